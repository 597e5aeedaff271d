"""The registry of platforms. `embedded` serves every organization that has no other."""

from rme.crm.connectors.base import Connector
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.connectors.mapped import MappedConnector
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.salesforce.connector import SalesforceConnector

REMOTE: dict[str, type[MappedConnector]] = {
    "salesforce": SalesforceConnector,
    "odoo": OdooConnector,
}
"""Those that are reached over the network, and need settings and a mapping."""
REGISTRY: dict[str, type[Connector]] = {"embedded": EmbeddedConnector, **REMOTE}
