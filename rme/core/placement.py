"""Whether an organization is served here: always, unless the deployment is one of several cells.

The setting `PLACES` names who answers: `OnlyPlace`, or a class of the cells. Statements read
`tenants_placement` themselves, so that a process that slept since it asked writes nothing; only
moves between cells fill that table. The conditions are the same text in all deployments: where the
table is empty, they cost a look into an empty index.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Protocol

from django.conf import settings
from django.db.models import BooleanField, F, Func
from django.utils.module_loading import import_string

from rme.core.db import sql

_ABSENT = (
    "NOT EXISTS (SELECT FROM tenants_placement elsewhere"
    " WHERE elsewhere.organization_id = {column}{also})"
)
_BUT_LEAVING = " AND elsewhere.phase <> 'LEAVING'"


class Places(Protocol):
    """Answers of a process about organizations, from knowledge that may be half a second old."""

    def absent(self) -> frozenset[str]: ...

    def is_written(self, organization_id: str) -> bool: ...

    def require_here(self, organization_id: str, *, at_once: bool) -> None: ...

    def writing(
        self, organization_ids: Collection[str]
    ) -> AbstractContextManager[sql.Step | None]: ...


class OnlyPlace:
    """The answers of a deployment without cells: every organization is here."""

    def absent(self) -> frozenset[str]:
        return frozenset()

    def is_written(self, organization_id: str) -> bool:
        return True

    def require_here(self, organization_id: str, *, at_once: bool) -> None:
        pass

    def writing(self, organization_ids: Collection[str]) -> AbstractContextManager[sql.Step | None]:
        return nullcontext()


@cache
def _places() -> Places:
    places: Places = import_string(settings.PLACES)()
    return places


# --- calls ----------------------------------------------------------------------------------------


def require_here(organization_id: str, *, at_once: bool = False) -> None:
    """Raise Misdirected for an organization that is elsewhere, Unavailable while it moves.

    With `at_once` the answer is as of now, which takes a statement.
    """
    _places().require_here(organization_id, at_once=at_once)


def is_written(organization_id: str) -> bool:
    """Return whether the rows of an organization may be changed here."""
    return _places().is_written(organization_id)


def absent() -> frozenset[str]:
    """Return the organizations for which nothing is done here: those that move, or have moved."""
    return _places().absent()


# --- statements -----------------------------------------------------------------------------------


def writing(organization_ids: Collection[str]) -> AbstractContextManager[sql.Step | None]:
    """Return a block for a statement that writes rows of organizations.

    Its value is a step that fails the statement if one of them takes no writes; None: they all do.
    The block then raises what `require_here` raises.
    """
    return _places().writing(organization_ids)


def here(column: str, *, leaving: bool = False) -> str:
    """Return the SQL condition that the organization in a column is here, and is not moving.

    With `leaving` it may be: what has begun for it is ended.
    """
    return _ABSENT.format(column=column, also=_BUT_LEAVING if leaving else "")


def is_here(path: str = "organization_id", *, leaving: bool = False) -> Func:
    """Return the condition `here` for a query of the ORM."""
    template = here("%(expressions)s", leaving=leaving)
    return Func(F(path), template=template, output_field=BooleanField())
