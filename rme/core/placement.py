"""Whether an organization is served here: always, unless the deployment is one of several cells.

The setting `PLACES` names who answers: `OnlyPlace`, or a class of the cells. There, statements look
for themselves, so that a process that slept since it asked writes nothing.

Ask by `rme.tenants.organizations` (calls, queries of the ORM) and `rme.core.db.due` (statements).
"""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from rme.core.db import sql


class Places(Protocol):
    """The answers, which may be half a second old but for those of statements."""

    def absent(self) -> frozenset[str]:
        """Return the organizations that move, or have moved: workers do nothing for them."""

    def is_written(self, organization_id: str) -> bool:
        """Return whether the rows of an organization may be changed here."""

    def require_here(self, organization_id: str, *, at_once: bool = False) -> None:
        """Raise Misdirected for an organization that is elsewhere, Unavailable while it moves.

        With `at_once` the answer is as of now, which takes a statement.
        """

    def writing(self, organization_ids: Collection[str]) -> AbstractContextManager[sql.Step | None]:
        """Return a block for a statement that writes rows of organizations.

        Its value is a step that fails the statement if one of them takes no writes; None: they all
        do. The block then raises what `require_here` raises.
        """

    def here(self, column: str, *, leaving: bool) -> str:
        """Return the SQL condition that the organization in a column is here and, unless `leaving`,
        isn't about to leave.
        """


class OnlyPlace:
    """The answers of a deployment without cells: every organization is here."""

    def absent(self) -> frozenset[str]:
        return frozenset()

    def is_written(self, organization_id: str) -> bool:
        return True

    def require_here(self, organization_id: str, *, at_once: bool = False) -> None:
        pass

    def writing(self, organization_ids: Collection[str]) -> AbstractContextManager[sql.Step | None]:
        return nullcontext()

    def here(self, column: str, *, leaving: bool) -> str:
        return "true"


@cache
def places() -> Places:
    """Return who answers in this process."""
    answers: Places = import_string(settings.PLACES)()
    return answers
