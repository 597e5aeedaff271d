"""The end of a pause whose move was killed, found by the cell that an organization comes to.

Once all is copied the organization is PAUSED here too, with the id of the pause. Whether it is
served here is decided by one commit in the other cell: its journal becomes SWITCHED. A move that is
killed right after it cannot tell this cell any more, so this cell asks. The answer about a pause is
final: one that was switched or given up stays so, since another try is another pause.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from enum import StrEnum
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection

from rme.cells import calls, signatures
from rme.cells.abandoned import end_abandoned_pauses
from rme.cells.placements import forget
from rme.core.db import commits
from rme.tenants.models import Move, Placement

log = structlog.get_logger(__name__)

PATH = f"{signatures.PATH}pauses"
AT_ONCE = 200
"""The most pauses of a run. A pause lasts for seconds: there are some, if any."""
_WAITING = """
SELECT cell, pause::text FROM tenants_placement
WHERE phase = 'PAUSED' AND pause IS NOT NULL
  AND since < statement_timestamp() - interval '1 second' LIMIT %s
"""
START = """
WITH started AS (
  DELETE FROM tenants_placement WHERE phase = 'PAUSED' AND pause = ANY(%s::uuid[])
  RETURNING organization_id
), former AS (
  DELETE FROM tenants_move m USING started WHERE m.organization_id = started.organization_id
)
SELECT organization_id FROM started ORDER BY 1
"""
"""SQL that lets organizations be served here. The journal of a former move away ends with it: by
that `--drop` would delete rows that are in use now."""
_GIVE_UP = """
UPDATE tenants_placement SET phase = 'ARRIVING', pause = NULL
WHERE phase = 'PAUSED' AND pause = ANY(%s::uuid[]) RETURNING organization_id
"""


class NotTakenOver(Exception):
    """An organization that another cell decides about; the message says why."""


class PauseState(StrEnum):
    """How a pause has ended, or that it has not."""

    OPEN = "OPEN"
    SWITCHED = "SWITCHED"
    GIVEN_UP = "GIVEN_UP"


_STATE_BY_STEP = {
    Move.MoveStep.PAUSING: PauseState.OPEN,
    Move.MoveStep.SWITCHED: PauseState.SWITCHED,
    Move.MoveStep.DONE: PauseState.SWITCHED,
}


def states_of(question: Mapping[str, object]) -> Mapping[str, object]:
    """Return the states of pauses of this cell's moves, by id. Up to three statements.

    The question ends the pauses of dead moves too, even where no worker runs. A switch that a
    failover could lose is not reported: then both cells would serve the organization.
    """
    pauses = question["pauses"]
    if not isinstance(pauses, list) or len(pauses) > AT_ONCE:
        raise ValueError("pauses")
    end_abandoned_pauses()
    ids = [UUID(str(each)) for each in pauses]
    steps = dict(Move.objects.filter(pause__in=ids).values_list("pause", "step"))
    if Move.MoveStep.SWITCHED in steps.values():
        commits.confirm_earlier()
    return {
        str(each): _STATE_BY_STEP.get(Move.MoveStep(steps[each]), PauseState.GIVEN_UP)
        if each in steps
        else PauseState.GIVEN_UP
        for each in ids
    }


answer = calls.signed(states_of)


def settle(ask: calls.Ask = calls.ask) -> list[str]:
    """Serve the organizations that were switched to here; return them.

    Those whose pause was given up are ARRIVING again. A call for each other cell that has some, and
    up to three statements.
    """
    if not settings.CELL:
        return []
    pauses_by_cell: dict[str, list[str]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [AT_ONCE])
        for cell, pause in cursor.fetchall():
            pauses_by_cell[cell].append(pause)
    states: dict[str, object] = {}
    for cell, pauses in pauses_by_cell.items():
        try:
            answers = ask(cell, PATH, {"pauses": pauses})
        except calls.CellNotReached:
            log.warning("cells.pauses_not_known", cell=cell, pauses=len(pauses))
            continue
        states |= {each: answers.get(each) for each in pauses}
    started = _execute(START, [each for each in states if states[each] == PauseState.SWITCHED])
    given_up = _execute(_GIVE_UP, [each for each in states if states[each] == PauseState.GIVEN_UP])
    if started or given_up:
        forget()
        log.warning("cells.pause_settled", started=started, given_up=given_up)
    return started


def take_over(organization_id: str, ask: calls.Ask = calls.ask) -> None:
    """Serve an organization that waits for a cell which is lost. Raise NotTakenOver.

    Its rows were compared before it was PAUSED here. If the lost cell comes back, its journal may
    say that it has the organization: docs/moves.md says what to do then.
    """
    placements = Placement.objects.filter(
        pk=organization_id, phase=Placement.Phase.PAUSED, pause__isnull=False
    )
    cell, pause = placements.values_list("cell", "pause").first() or ("", None)
    if pause is None:
        raise NotTakenOver(f"{organization_id} does not wait here for a switch.")
    try:
        ask(cell, PATH, {"pauses": [str(pause)]})
    except calls.CellNotReached:
        started = _execute(START, [str(pause)])
        forget()
        log.warning("cells.taken_over", cell=cell, organizations=started)
    else:
        raise NotTakenOver(
            f"The cell {cell} answers: its journal decides, and workers here ask it."
        )


def _execute(text: str, pauses: Collection[str]) -> list[str]:
    if not pauses:
        return []
    with connection.cursor() as cursor:
        cursor.execute(text, [list(pauses)])
        return [organization for (organization,) in cursor.fetchall()]
