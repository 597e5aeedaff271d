"""Moving an organization from this cell to another: the commands `move_organization`,
`prepare_cell` and `migrate` are its callers.
"""

from rme.cells.moving.carried import LEFT_BEHIND, UnknownTables, tables
from rme.cells.moving.copying import KeysOverlap, RowDifference
from rme.cells.moving.databases import MoveDatabases, NoSession
from rme.cells.moving.fence import TakesTooLong
from rme.cells.moving.identity import NotReady, begin_sequences, prepare
from rme.cells.moving.late import NOT_LATE, LateRows
from rme.cells.moving.move import MoveLimits, Mover, MoveRefused, opened
from rme.cells.moving.report import Report

__all__ = [
    "LEFT_BEHIND",
    "NOT_LATE",
    "KeysOverlap",
    "LateRows",
    "MoveDatabases",
    "MoveLimits",
    "MoveRefused",
    "Mover",
    "NoSession",
    "NotReady",
    "Report",
    "RowDifference",
    "TakesTooLong",
    "UnknownTables",
    "begin_sequences",
    "opened",
    "prepare",
    "tables",
]
