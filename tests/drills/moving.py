"""The drill of a move: two cells behind a router, and an organization that is moved from one to the
other while programs send for it.
"""

import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import requests

from rme.run.places import engine_env
from tests.drills.callers import BULK_EVERY, Callers
from tests.drills.machine import folder_with_sink
from tests.drills.postgres import wait_until
from tests.faults.accounting import IN_DOUBT, Sink
from tests.service import ROOT, Service, free_port, own_engines

BEFORE_SECONDS, AFTER_SECONDS = 8.0, 8.0
END_SECONDS = 180.0
ENDED = ("SENT", "DELIVERED")
BULKS_EVERY = 6
"""One of so many requests is a bulk."""
FEW = {"WEB_WORKERS": "1", "WORKER_CONCURRENCY": "1"}
_MILLISECONDS = re.compile(r"^(copying|leaving|paused): ([\d,]+) ms$", re.MULTILINE)


class Cell(Service):
    """A cell, whose demo is called at the router."""

    def __init__(self, var: Path, router: int, **env: str) -> None:
        super().__init__(var, **env)
        self.router = router

    def demo(self) -> dict[str, Any]:
        """Return the demo's secrets, and the router's addresses."""
        base = f"http://127.0.0.1:{self.router}"
        return {**super().demo(), "base_url": f"{base}/rme/v1", "auth_url": base}

    def manage(self, *words: str, **env: str) -> str:
        """Run a command of this cell, on its engines; return what it wrote."""
        command = [sys.executable, "-m", "rme.run", "--var", str(self.var), "exec", "--"]
        command += [sys.executable, str(ROOT / "manage.py"), *words]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**self.env, **env},
            text=True,
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout


@dataclass(frozen=True)
class Account:
    """What became of all that was accepted."""

    accepted: int
    lost: int
    """Messages with a 202 that the target does not have."""
    both: int
    """Messages that were accepted in the target, and are in the cell that was left, too."""
    unsent: int
    doubled: int
    """Copies beyond the first."""
    rate: float
    """Accepted messages a second, but for the pause."""
    rows: str
    """The command's last words on rows."""
    milliseconds: dict[str, int]
    """By step, as the command wrote them."""
    outage: float
    """The longest time between two 202s, in seconds."""
    silence: float
    """The longest time between two mails."""
    answers: dict[str, int]
    ledger: str


class Senders(Callers):
    """Programs that send more in bulks, and whose organization has a ledger."""

    def record_consent(self) -> None:
        """Record a decision of each contact."""
        for person in self.demo["contact_ids"]:
            answer = requests.post(
                f"{self.demo['base_url']}/consent",
                json={
                    "contactId": person,
                    "channel": "EMAIL",
                    "category": "TRANSACTIONAL",
                    "status": "OPTED_IN",
                },
                headers=self._headers,
                timeout=10,
            )
            assert answer.status_code == 201, answer.text

    def _body(self, number: int) -> dict[str, Any]:
        return super()._body(number * BULK_EVERY if number % BULKS_EVERY == 0 else number)


@contextmanager
def two_cells() -> Iterator[tuple[Cell, Cell, Sink]]:
    """Run two cells and a router, with the cells prepared for a move, and their mail server."""
    ports = {"eu": free_port(), "us": free_port()}
    router = free_port()
    with ExitStack() as stack:
        folder, sink = stack.enter_context(folder_with_sink())
        env = {
            **FEW,
            "SECRET_KEY": secrets.token_urlsafe(48),
            "CELL_SECRET": secrets.token_urlsafe(48),
            "CELLS": ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in ports.items()),
            "BASE_URL": f"http://127.0.0.1:{router}",
            "SMTP_URL": f"smtp+plain://127.0.0.1:{sink.port}",
            "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
        }
        cells: list[Cell] = []
        for name, port in ports.items():
            (folder / name).mkdir(mode=0o755)
            cell = Cell(folder / name, router, **env, CELL=name, TLS_PROXY="1")
            cell.port, cell.env["PORT"] = port, str(port)
            if cells:
                subprocess.run(["cp", "-a", cells[0].var / "postgres", cell.var], check=True)
            else:
                cell.manage("migrate", "--verbosity", "0")
            cells.append(cell)
        for number, cell in enumerate(cells):
            cell.manage("prepare_cell", "--number", str(number))
            stack.callback(_end, cell)
            cell.start()
        command = [sys.executable, "-m", "rme.router"]
        process = subprocess.Popen(
            command, cwd=ROOT, env={**own_engines(), **env, "PORT": str(router)}
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_until(lambda: _is_ready(router), "the router", 60)
        yield cells[0], cells[1], sink


def _is_ready(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=2).ok
    except requests.RequestException:
        return False


def _end(cell: Cell) -> None:
    if cell.process is None:
        return
    if cell.process.poll() is None:
        tree = psutil.Process(cell.process.pid).children(recursive=True)
        cell.process.terminate()
        cell.process.wait(60)
        psutil.wait_procs(tree, 10)
    cell.log.close()


def play() -> Account:
    """Play the drill; return the account."""
    with two_cells() as (source, target, sink):
        return _move(source, target, sink)


def _move(source: Cell, target: Cell, sink: Sink) -> Account:
    callers = Senders(source, "move")
    callers.record_consent()
    organization = callers.demo["org"]
    mails = _Mails(sink)
    with callers.calling():
        mails.watch(BEFORE_SECONDS)
        move = subprocess.Popen(
            [
                *(sys.executable, "-m", "rme.run", "--var", str(source.var), "exec", "--"),
                *(sys.executable, str(ROOT / "manage.py"), "move_organization", organization),
                *("--to", "us"),
            ],
            cwd=ROOT,
            env={**source.env, "MOVE_DATABASE_URL": engine_env(target.var)["DATABASE_URL"]},
            text=True,
            stdout=subprocess.PIPE,
        )
        while move.poll() is None:
            mails.watch(0.05)
        mails.watch(AFTER_SECONDS)
    words = move.stdout.read() if move.stdout else ""
    print(words, flush=True)
    assert move.returncode == 0, "the command failed"
    ended = ", ".join(f"'{each}'" for each in ENDED)
    left = (
        "SELECT count(*) FROM messaging_delivery "
        f"WHERE organization_id = '{organization}' AND status NOT IN ({ended})"
    )
    wait_until(lambda: target.sql(left) == [(0,)], "the end of all deliveries", END_SECONDS)
    return _account(callers, source, target, mails, words)


class _Mails:
    """The mail server's list, and the longest time in which it did not grow."""

    def __init__(self, sink: Sink) -> None:
        self.sink, self.silence = sink, 0.0
        self._size = 0
        self._at: float | None = None

    def watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            now, size = time.monotonic(), self.sink.ids.stat().st_size
            if size != self._size:
                if self._at is not None:
                    self.silence = max(self.silence, now - self._at)
                self._size, self._at = size, now
            if now >= until:
                return
            time.sleep(0.02)


def _account(callers: Senders, source: Cell, target: Cell, mails: _Mails, words: str) -> Account:
    organization = callers.demo["org"]
    query = f"SELECT id::text FROM messaging_message WHERE organization_id = '{organization}'"
    here, there = ({row[0] for row in cell.sql(query)} for cell in (source, target))
    accepted = callers.messages
    times = sorted(each.at for each in callers.accepted)
    gaps = [after - before for before, after in pairwise(times)]
    doubtful = {row[0] for row in target.sql(IN_DOUBT)}
    received = mails.sink.received()
    switched = max(gaps)
    milliseconds = {
        name: int(number.replace(",", "")) for name, number in _MILLISECONDS.findall(words)
    }
    after = times[gaps.index(switched) + 1]
    late = {message for each in callers.accepted if each.at >= after for message in each.messages}
    return Account(
        accepted=len(accepted),
        lost=len(accepted - there),
        both=len({each for each in late & here if _is_late(callers, each, after)}),
        unsent=len([each for each in accepted if not received[each]]),
        doubled=sum(received[each] - 1 for each in accepted - doubtful if received[each] > 1),
        rate=len(accepted) / (times[-1] - times[0] - switched),
        rows=next(line for line in words.splitlines() if line.startswith("moved from")),
        milliseconds=milliseconds,
        outage=switched,
        silence=mails.silence,
        answers=dict(callers.answers),
        ledger=target.manage("verify_consent", "--org", organization).strip(),
    )


def _is_late(callers: Callers, message: str, after: float) -> bool:
    """Return whether a message's accepted try began after the switch."""
    return any(message in each.messages and each.begun > after for each in callers.accepted)
