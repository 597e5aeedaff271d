"""The drill of a move: two cells behind a router, and an organization that is moved from one to the
other while programs send and record decisions, a gateway reports its SMS, and webhooks leave.
"""

import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import psutil
import requests

from rme.run.places import engine_env
from tests.drills.callers import BULK_EVERY, Callers
from tests.drills.decisions import LEDGER, Decisions, DecisionsAccount
from tests.drills.far_side import ACCOUNT, EventsAccount, FarSide, ReportsAccount
from tests.drills.machine import folder_with_sink, machine_folder
from tests.drills.postgres import wait_until
from tests.faults.accounting import IN_DOUBT, Sink
from tests.service import ROOT, Service, free_port, own_engines

BEFORE_SECONDS, AFTER_SECONDS = 8.0, 8.0
END_SECONDS = 180.0
BULKS_EVERY, SMS_EVERY = 6, 4
"""One of so many requests is a bulk, or else an SMS."""
FEW = {"WEB_WORKERS": "1", "WORKER_CONCURRENCY": "1"}
_LEFT = {
    "deliveries": "SELECT count(*) FROM messaging_delivery WHERE organization_id = '{}' AND "
    # An SMS ends with its report.
    "status NOT IN ('DELIVERED', CASE channel WHEN 'SMS' THEN 'DELIVERED' ELSE 'SENT' END)",
    "webhooks": "SELECT count(*) FROM messaging_notice WHERE organization_id = '{}' AND "
    "status = 'PENDING'",
}
_SMS_ATTEMPTS = """
SELECT id::text, delivery_id::text FROM messaging_attempt
WHERE organization_id = '{}' AND channel = 'SMS'
"""
_GATEWAY = """
import json
from messaging.models import ProviderAccount
rows = ProviderAccount.objects.filter(organization_id={organization!r}, channel="SMS")
rows.update(state="PAUSED")
ProviderAccount.objects.create(
    organization_id={organization!r}, name="gateway", kind="http_sms", channel="SMS",
    credentials=json.dumps({settings!r}),
)
"""
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
    odd: set[str]
    """Answers that no caller should see."""
    ledger: str
    decisions: DecisionsAccount
    reports: ReportsAccount
    events: EventsAccount


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

    def subscribe(self, url: str) -> None:
        """Have webhooks tell of what is sent, delivered and decided."""
        types = ["message.sent", "message.delivered", "consent.changed"]
        answer = self.post("/webhook-endpoints", {"url": url, "types": types})
        assert answer.status_code == 201, answer.text

    def _body(self, number: int) -> dict[str, Any]:
        if number % BULKS_EVERY == 0:
            return super()._body(number * BULK_EVERY)
        body = super()._body(number)
        is_sms = number % SMS_EVERY == 0 and "messages" not in body
        return body | {"channel": "SMS"} if is_sms else body


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
        command = [sys.executable, "-m", "rme.cells.router"]
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
    with two_cells() as (source, target, sink), machine_folder() as folder:
        far_side = FarSide(folder)
        try:
            return _move(source, target, sink, far_side)
        finally:
            far_side.stop()


def _move(source: Cell, target: Cell, sink: Sink, far_side: FarSide) -> Account:
    callers = Senders(source, "move")
    callers.record_consent()
    organization = callers.demo["org"]
    settings = ACCOUNT | {"url": far_side.url("sms")}
    script = _GATEWAY.format(organization=organization, settings=settings)
    source.manage("shell", "--no-imports", "-c", script)
    callers.subscribe(far_side.url("events"))
    mails, decisions = _Mails(sink), Decisions(callers)
    with callers.calling(), decisions.recording():
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
        assert move.stdout
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(_read, move.stdout)
            while not reading.done():
                mails.watch(0.05)
        words, serves_at = reading.result()
        assert move.wait() == 0, "the command failed"
        mails.watch(AFTER_SECONDS)
    for name, left in _LEFT.items():
        query = left.format(organization)
        wait_until(partial(_is_none, target, query), f"the end of all {name}", END_SECONDS)
    return _account(callers, decisions, source, target, mails, far_side, words, serves_at)


def _read(lines: IO[str]) -> tuple[str, float]:
    """Read a move's words until its end; return them, and when the target began to serve."""
    words, serves_at = "", 0.0
    for line in lines:
        print(line, end="", flush=True)
        words += line
        if line == "us serves it\n":
            serves_at = time.monotonic()
    return words, serves_at


def _is_none(cell: Cell, count: str) -> bool:
    return cell.sql(count) == [(0,)]


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


def _account(
    callers: Senders,
    decisions: Decisions,
    source: Cell,
    target: Cell,
    mails: _Mails,
    far_side: FarSide,
    words: str,
    serves_at: float,
) -> Account:
    organization = callers.demo["org"]
    query = f"SELECT id::text FROM messaging_message WHERE organization_id = '{organization}'"
    here, there = ({row[0] for row in cell.sql(query)} for cell in (source, target))
    accepted = callers.messages
    times = sorted(each.at for each in callers.accepted)
    gaps = [after - before for before, after in pairwise(times)]
    doubtful = {row[0] for row in target.sql(IN_DOUBT)}
    delivery_of = dict(target.sql(_SMS_ATTEMPTS.format(organization)))
    sms, received = Counter[str](), mails.sink.received()
    for attempt, count in far_side.sms().items():
        sms[delivery_of[attempt]] += count
    received += sms
    reported = {delivery_of[attempt]: calls for attempt, calls in far_side.reports().items()}
    outage = max(gaps)
    milliseconds = {
        name: int(number.replace(",", "")) for name, number in _MILLISECONDS.findall(words)
    }
    late = {
        message for each in callers.accepted if each.begun > serves_at for message in each.messages
    }
    assert serves_at and late, "nothing was accepted after the switch"
    told = far_side.events()
    events = {("message.sent", message) for message in accepted}
    events |= {("message.delivered", message) for message in sms}
    events |= {("consent.changed", each.entry) for each in decisions.made}
    return Account(
        accepted=len(accepted),
        lost=len(accepted - there),
        both=len(late & here),
        unsent=len([each for each in accepted if not received[each]]),
        doubled=sum(received[each] - 1 for each in accepted - doubtful if received[each] > 1),
        rate=len(accepted) / (times[-1] - times[0] - outage),
        rows=next(line for line in words.splitlines() if line.startswith("moved from")),
        milliseconds=milliseconds,
        outage=outage,
        silence=mails.silence,
        answers=dict(callers.answers),
        odd=callers.odd,
        ledger=target.manage("verify_consent", "--org", organization).strip(),
        decisions=decisions.account({row[0] for row in target.sql(LEDGER.format(organization))}),
        reports=ReportsAccount(
            made=len(sms),
            lost=len(sms.keys() - reported.keys()),
            repeated=sum(calls > 1 for calls in reported.values()),
        ),
        events=EventsAccount(
            made=len(events),
            lost=len(events - told.keys()),
            repeated=sum(count - 1 for count in told.values()),
        ),
    )
