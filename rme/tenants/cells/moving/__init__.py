"""Moving an organization from this cell to another: the commands `move_organization` and
`prepare_cell` are its callers.
"""

from rme.tenants.cells.moving.carried import LEFT_BEHIND, UnknownTables, tables
from rme.tenants.cells.moving.copying import Differs
from rme.tenants.cells.moving.databases import of_url
from rme.tenants.cells.moving.fence import TakesTooLong
from rme.tenants.cells.moving.identity import NotReady, prepare
from rme.tenants.cells.moving.move import Ends, Mover, Refused, Report, opened
from rme.tenants.cells.moving.people import KeysOverlap

__all__ = [
    "LEFT_BEHIND",
    "Differs",
    "Ends",
    "KeysOverlap",
    "Mover",
    "NotReady",
    "Refused",
    "Report",
    "TakesTooLong",
    "UnknownTables",
    "of_url",
    "opened",
    "prepare",
    "tables",
]
