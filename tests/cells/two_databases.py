"""Two cells in one process: each is a name and a database."""

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from django.conf import settings as project
from django.core.management import call_command
from django.db import connection, connections

from rme.cells import moving, placements
from rme.core.cache import TtlCache


def _enter(cell, database):
    connections.close_all()
    connection.close_pool()
    project.CELL, connection.settings_dict["NAME"] = cell, database
    TtlCache.clear_all()
    placements.forget()


@contextmanager
def in_cell(cell, database):
    """Work in a cell: by its name and its database."""
    before = project.CELL, connection.settings_dict["NAME"]
    _enter(cell, database)
    try:
        yield
    finally:
        _enter(*before)


@dataclass(frozen=True)
class Cells:
    """How to work in the cell `us`, by a call, and in `eu` again; and the URL of its database."""

    us: Callable[[], AbstractContextManager[None]]
    home: Callable[[], AbstractContextManager[None]]
    url: str

    def __call__(self):
        return self.us()


def move(*words):
    call_command("move_organization", "acme", "--to", "us", *words, verbosity=0)
    placements.forget()


def to_us():
    return moving.MoveDatabases.to("us")


def counts():
    """Return the number of rows of each table that a move carries, of those that have any."""
    with connection.cursor() as cursor:
        found = {}
        for table in moving.tables():
            cursor.execute(f"SELECT count(*) FROM {table.name} t WHERE {table.rows_of('acme')}")
            (found[table.name],) = cursor.fetchone()
    return {name: count for name, count in found.items() if count}


def phase():
    return placements.where("acme").phase


def phases(us):
    with us():
        there = phase()
    return phase(), there
