"""What this process knows of organizations that are elsewhere, and what their calls get.

Each process reads the placements at most once in `KNOWN_SECONDS`, with the call that needs them:
a move that pauses writes waits for as long. Where the check and the write are one statement
(`writing`, and the conditions of `rme.core.placement`), the database itself decides, so that a
process which slept in between writes nothing. Without `CELL` nothing is read.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext as _

from rme.cells import signatures
from rme.core import errors
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
_ABSENT = (
    f"NOT EXISTS (SELECT FROM {_T} elsewhere WHERE elsewhere.organization_id = {{column}}{{also}})"
)
_BUT_LEAVING = f" AND elsewhere.phase <> '{Phase.LEAVING.value}'"
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


def _placements(seconds: float) -> Mapping[str, Location]:
    return _known.placements(seconds) if settings.CELL else {}


class Placements:
    """The answers of a cell, as `rme.core.placement` asks for them."""

    def absent(self) -> frozenset[str]:
        return frozenset(_placements(KNOWN_SECONDS))

    def is_written(self, organization_id: str) -> bool:
        return _placements(KNOWN_SECONDS).get(organization_id, Location()).is_written

    def require_here(self, organization_id: str, *, at_once: bool = False) -> None:
        """Raise Misdirected with the cell that serves an organization, Unavailable in a pause."""
        if at_once:
            location = where(organization_id)
        elif self.is_written(organization_id):
            return
        else:
            location = _placements(FRESH_SECONDS).get(organization_id, Location())
        if location.phase in (Phase.MOVED, Phase.ARRIVING):
            raise errors.Misdirected(headers={signatures.CELL_HEADER: location.cell})
        if location.phase == Phase.PAUSED:
            raise _paused()

    @contextmanager
    def writing(self, organization_ids: Collection[str]) -> Iterator[sql.Step | None]:
        check = sql.Step(_REFUSE, [sql.array(organization_ids)]) if settings.CELL else None
        try:
            yield check
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) != SQLSTATE:
                raise
            forget()
            for organization_id in organization_ids:
                self.require_here(organization_id)
            raise _paused() from error  # it came back meanwhile

    def here(self, column: str, *, leaving: bool) -> str:
        return _ABSENT.format(column=column, also=_BUT_LEAVING if leaving else "")


def _paused() -> errors.Unavailable:
    """Build the error of a call during the seconds of a pause."""
    return errors.Unavailable(
        _("The organization is being moved to another cell."),
        headers={"Retry-After": "1", signatures.PAUSED_HEADER: "1"},
    )
