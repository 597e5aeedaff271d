"""The drill of moves that are killed: with SIGKILL, in their pause and right after their switch.

Nobody gives the command again: the workers of both cells, and calls between them, have to end it.
"""

import subprocess
import sys
import time
from dataclasses import dataclass

from rme.run.places import engine_env
from tests.drills.moving import Cell, Senders, two_cells
from tests.drills.postgres import wait_until
from tests.service import ROOT

STEPS = ("leaving", "paused", "ready", "switched")
SETTLE_SECONDS = 60.0
_MOVE = """
import os, signal
from rme.cells import moving

def say(text):
    if text.partition(":")[0] == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)

with moving.opened(moving.MoveDatabases.to("us"), {organization!r}, say) as mover:
    mover.move(moving.MoveLimits())
"""
_PHASE = "SELECT phase FROM tenants_placement WHERE organization_id = '{}'"


@dataclass(frozen=True)
class KilledMove:
    """What became of a move that was killed."""

    step: str
    seconds: float
    """From its death until a message was accepted at the router, and both cells agree."""
    phases: tuple[str, str]
    """Where it was left, and where it was to come to, at the end."""


def play() -> list[KilledMove]:
    """Kill a move at each step in turn; return what became of each."""
    with two_cells() as (source, target, _sink):
        callers = Senders(source, "killed")
        return [_kill(step, source, target, callers) for step in STEPS]


def _kill(step: str, source: Cell, target: Cell, callers: Senders) -> KilledMove:
    organization = callers.demo["org"]
    url = engine_env(target.var)["DATABASE_URL"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "rme.run", "--var", str(source.var), "exec", "--"),
            *(sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c"),
            _MOVE.format(step=step, organization=organization),
        ],
        cwd=ROOT,
        env={**source.env, "MOVE_DATABASE_URL": url},
        check=False,
    )
    assert done.returncode != 0, "the move was not killed"
    died = time.monotonic()
    callers.accept_one()

    def phases() -> tuple[str, str]:
        rows = [cell.sql(_PHASE.format(organization)) for cell in (source, target)]
        here, there = (str(each[0][0]) if each else "" for each in rows)
        return here, there

    wait_until(
        lambda: not {"PAUSED", "LEAVING"} & {*phases()}, "the end of the pause", SETTLE_SECONDS
    )
    found = KilledMove(step, time.monotonic() - died, phases())
    print(found, flush=True)
    return found
