"""Moving an organization from this cell to another: the commands `move_organization` and
`prepare_cell` are its callers.
"""

from rme.tenants.cells.moving.carried import LEFT_BEHIND, UnknownTables, tables
from rme.tenants.cells.moving.copying import Differs, KeysOverlap
from rme.tenants.cells.moving.databases import of_url
from rme.tenants.cells.moving.fence import TakesTooLong
from rme.tenants.cells.moving.identity import NotReady, prepare
from rme.tenants.cells.moving.move import Mover, Refused, opened
from rme.tenants.cells.moving.report import Ends, Report

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
