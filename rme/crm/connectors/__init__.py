"""The registry of platforms. `embedded` serves every organization that has no other."""

from rme.crm.connectors.base import Connector
from rme.crm.connectors.embedded import Embedded

REGISTRY: dict[str, type[Connector]] = {"embedded": Embedded}
