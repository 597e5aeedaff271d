"""The registry of platforms. `embedded` serves every organization that has no other."""

from rme.crm.connectors.base import Connector
from rme.crm.connectors.embedded import Embedded
from rme.crm.connectors.mapped import Mapped
from rme.crm.connectors.odoo import Odoo
from rme.crm.connectors.salesforce import Salesforce

REMOTE: dict[str, type[Mapped]] = {"salesforce": Salesforce, "odoo": Odoo}
"""Those that are reached over the network, and need settings and a mapping."""
REGISTRY: dict[str, type[Connector]] = {"embedded": Embedded, **REMOTE}
