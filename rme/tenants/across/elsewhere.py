"""The organizations of a person in other cells, for the console's choice of organizations."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest

from rme.core.cache import TtlCache
from rme.tenants import cells
from rme.tenants.across import calls
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
    others = cells.other_cells()
    user = request.user
    if not others or not isinstance(user, User) or hasattr(request, "acting_by"):
        return []
    person = user.person
    with ThreadPoolExecutor(len(others)) as pool:
        return list(pool.map(lambda cell: _of_cell(cell, person), others))


def forget(person: UUID) -> None:
    """Let this process ask the cells about a person anew."""
    for cell in settings.CELLS:
        _known.forget((cell, person))
        _unconnected.forget((cell, person))


def _of_cell(cell: str, person: UUID) -> Elsewhere:
    key = (cell, person)
    found = _known.get(key, lambda: _connected(_unconnected.get(key, lambda: _ask(cell, person))))
    return found or _unconnected.get(key, lambda: _ask(cell, person)) or Elsewhere(cell)


def _connected(found: Elsewhere | None) -> Elsewhere | None:
    return found if found and (found.connected or not found.reached) else None


def _ask(cell: str, person: UUID) -> Elsewhere:
    try:
        answer = cells.ask(cell, calls.ORGANIZATIONS, {"person": str(person)})
        rows = answer["organizations"]
        if not isinstance(rows, list):
            return Elsewhere(cell, reached=False)
        return Elsewhere(
            cell, tuple((str(key), str(name)) for key, name in rows), bool(answer["account"])
        )
    except (cells.CellNotReached, KeyError, TypeError, ValueError):
        return Elsewhere(cell, reached=False)
