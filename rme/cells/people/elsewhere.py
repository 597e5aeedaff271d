"""The organizations of a person in other cells, for the console's choice of organizations."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from rme.cells import calls
from rme.cells.people import answers
from rme.core.cache import TtlCache
from rme.tenants.models import User

KNOWN_SECONDS = 30.0
UNCONNECTED_SECONDS = 3.0
"""How long it is remembered that a person has no connected account: it may just connect one."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a person has in another cell."""

    cell: str
    organizations: tuple[tuple[str, str], ...] = ()
    """Their ids and names."""
    connected: bool = False
    """Whether the account there is known to be this person's."""
    reached: bool = True


_known: TtlCache[tuple[str, UUID], Elsewhere] = TtlCache(seconds=KNOWN_SECONDS, size=10_000)
_unconnected: TtlCache[tuple[str, UUID], Elsewhere] = TtlCache(UNCONNECTED_SECONDS, size=10_000)


def organizations_elsewhere(request: HttpRequest) -> list[Elsewhere]:
    """Return what the person of a request has in each other cell; nothing while acting as another.

    Other cells are asked side by side, at most once in `KNOWN_SECONDS`.
    """
    other_cells = calls.other_cells()
    user = request.user
    if not other_cells or not isinstance(user, User) or hasattr(request, "acting_by"):
        return []
    person = user.person
    with ThreadPoolExecutor(len(other_cells)) as pool:
        return list(pool.map(lambda cell: _of_cell(cell, person), other_cells))


def context(request: HttpRequest) -> dict[str, object]:
    """Return `elsewhere` for templates (a context processor); cells are asked if it is read."""
    return {"elsewhere": SimpleLazyObject(partial(organizations_elsewhere, request))}


def forget(person: UUID) -> None:
    """Let this process ask the cells about a person anew."""
    for cell in settings.CELLS:
        _known.forget((cell, person))
        _unconnected.forget((cell, person))


def _of_cell(cell: str, person: UUID) -> Elsewhere:
    key = (cell, person)
    answer = _known.get(key, lambda: _connected(_unconnected.get(key, lambda: _ask(cell, person))))
    return answer or _unconnected.get(key, lambda: _ask(cell, person)) or Elsewhere(cell)


def _connected(answer: Elsewhere | None) -> Elsewhere | None:
    return answer if answer and (answer.connected or not answer.reached) else None


def _ask(cell: str, person: UUID) -> Elsewhere:
    try:
        answer = calls.ask(cell, answers.ORGANIZATIONS, {"person": str(person)})
        rows = answer["organizations"]
        if not isinstance(rows, list):
            return Elsewhere(cell, reached=False)
        return Elsewhere(
            cell, tuple((str(key), str(name)) for key, name in rows), bool(answer["account"])
        )
    except (calls.CellNotReached, KeyError, TypeError, ValueError):
        return Elsewhere(cell, reached=False)
