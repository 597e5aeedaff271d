"""What this process knows of organizations that are elsewhere, and what their calls get.

Each process reads the placements at most once in `KNOWN_SECONDS`, with the call that needs them:
a move that pauses writes waits for as long. Where the check and the write are one statement
(`accepted_here`, `here`), the database itself decides, so that a process which slept in between
writes nothing. A deployment without `CELL` reads nothing.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Exists, OuterRef, Q

from rme.core import cell_calls, errors
from rme.core.db import prepared_statements, sql
from rme.tenants.models import Placement

KNOWN_SECONDS = 0.5
"""How old this process's knowledge may be."""
FRESH_SECONDS = 0.05
"""How old it may be for a refusal: the move may just have ended."""
SQLSTATE = "RM421"
"""The error of `refuse_elsewhere`, a function of the database."""

_T = Placement._meta.db_table
Phase = Placement.Phase
_COLUMNS = "phase, cell, pause IS NOT NULL"
_READ = f"SELECT organization_id, {_COLUMNS} FROM {_T}"
_READ_ONE = f"SELECT {_COLUMNS} FROM {_T} WHERE organization_id = %s"
_REFUSE = "SELECT refuse_elsewhere(%s::text[])"


class Location(NamedTuple):
    """An organization's placement. Without a phase it is simply in this cell."""

    phase: str = ""
    cell: str = ""
    awaits_switch: bool = False
    """It is PAUSED, and comes from the other cell."""

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the other cell decides about it: it is, or still is, that cell's."""
        return self.phase in (Phase.ARRIVING, Phase.MOVED) or self.awaits_switch

    @property
    def is_written(self) -> bool:
        """Return whether the rows of the organization may be changed in this cell."""
        return self.phase in ("", Phase.LEAVING)


class _KnownPlacements:
    """The placements as of the last reading."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: Mapping[str, Location] = {}
        self._read_at = float("-inf")

    def placements(self, seconds: float) -> Mapping[str, Location]:
        """Return the placements as of `seconds` ago or later. Raise DatabaseError."""
        with self._lock:
            now = time.monotonic()
            if now - self._read_at > seconds:
                rows = prepared_statements.execute(_READ)
                self._found = {row[0]: Location(*row[1:]) for row in rows}
                self._read_at = now
            return self._found

    def forget(self) -> None:
        with self._lock:
            self._read_at = float("-inf")


_known = _KnownPlacements()


def forget() -> None:
    """Let this process read the placements anew."""
    _known.forget()


def where(organization_id: str) -> Location:
    """Return where an organization is, as of now. One statement."""
    if not settings.CELL:
        return Location()
    rows = prepared_statements.execute(_READ_ONE, [organization_id])
    return Location(*rows[0]) if rows else Location()


def absent() -> frozenset[str]:
    """Return the organizations for which nothing is done here: those that move, or have moved."""
    return frozenset(_placements(KNOWN_SECONDS))


def is_written(organization_id: str) -> bool:
    """Return whether the rows of an organization may be changed here."""
    return _placements(KNOWN_SECONDS).get(organization_id, Location()).is_written


def require_here(organization_id: str) -> None:
    """Raise Misdirected for an organization in another cell, Unavailable for a paused one."""
    if is_written(organization_id):
        return
    found = _placements(FRESH_SECONDS).get(organization_id, Location())
    if found.phase in (Phase.MOVED, Phase.ARRIVING):
        raise errors.Misdirected(headers={cell_calls.CELL_HEADER: found.cell})
    if found.phase == Phase.PAUSED:
        raise paused()


def paused() -> errors.Unavailable:
    """Build the error of a call during the seconds of a pause."""
    return errors.Unavailable(
        "The organization is being moved to another cell.",
        headers={"Retry-After": "1", cell_calls.PAUSED_HEADER: "1"},
    )


def _placements(seconds: float) -> Mapping[str, Location]:
    return _known.placements(seconds) if settings.CELL else {}


# --- conditions of statements ---------------------------------------------------------------------


def accepted_here(organization_ids: Collection[str]) -> sql.Step | None:
    """Return the step that fails a statement if one of the organizations takes no writes."""
    return sql.Step(_REFUSE, [sql.array(organization_ids)]) if settings.CELL else None


@contextmanager
def refusals(organization_ids: Collection[str]) -> Iterator[None]:
    """Raise what `require_here` raises, if a statement fails in the block by `accepted_here`."""
    try:
        yield
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) != SQLSTATE:
            raise
        forget()
        for each in organization_ids:
            require_here(each)
        raise paused() from error  # it came back meanwhile


def here(column: str, *, leaving: bool = False) -> str:
    """Return the SQL condition that the organization in a column is here, and is not moving.

    With `leaving` it may be: what has begun for it is ended.
    """
    also = f" AND elsewhere.phase <> '{Phase.LEAVING.value}'" if leaving else ""
    return (
        f"NOT EXISTS (SELECT FROM {_T} elsewhere WHERE elsewhere.organization_id = {column}{also})"
    )


def is_here(path: str = "organization_id", *, leaving: bool = False) -> Q:
    """Return the condition `here` for a query of the ORM."""
    elsewhere = Placement.objects.filter(organization_id=OuterRef(path))
    if leaving:
        elsewhere = elsewhere.exclude(phase=Phase.LEAVING)
    return ~Q(Exists(elsewhere))
