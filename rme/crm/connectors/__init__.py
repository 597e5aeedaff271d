"""The registry of platforms. Organizations without a platform of their own use `embedded`.

Other packages import `REGISTRY` and `REMOTE` from here, and the modules `base`, `records` and
`conditions`.
"""

from rme.crm.connectors.base import Connector
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.connectors.mapped import MappedConnector
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.salesforce.connector import SalesforceConnector

REMOTE: dict[str, type[MappedConnector]] = {
    "salesforce": SalesforceConnector,
    "odoo": OdooConnector,
}
"""Platforms that are called over the network, and need settings and a mapping."""
REGISTRY: dict[str, type[Connector]] = {"embedded": EmbeddedConnector, **REMOTE}
