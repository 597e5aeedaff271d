"""Traffic through a running service, and an account of what became of every message accepted."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import requests

from tests.faults.inflict import Fault
from tests.service import ROOT, Service, free_port, note

BULK = 20
EVERY_SECONDS = 0.15
SCHEDULED_EVERY = 5
"""One of so many bulks is scheduled a second ahead."""
BEFORE_SECONDS = AFTER_SECONDS = 1.0
MEND_SECONDS = 180
"""How long accepting, and then sending all that was accepted, may take after a fault."""
WINDOW = 50

# An attempt that may have reached the provider: its message may be sent a second time. Its outcome
# may have come after that was decided; then it is not what made the delivery SENT.
IN_DOUBT = """
SELECT DISTINCT a.delivery_id::text FROM messaging_attempt a
JOIN messaging_attempt b ON b.delivery_id = a.delivery_id AND b.id > a.id
WHERE coalesce(a.outcome, 'Unknown') = 'Unknown' OR a.sent_at IS NULL AND EXISTS (
  SELECT FROM messaging_event e WHERE e.delivery_id = a.delivery_id
    AND e.detail->>'decision' = 'RESEND' AND e.at BETWEEN a.started_at AND b.started_at)
"""
_DELIVERIES = "SELECT id::text, message_id::text, status, reason FROM messaging_delivery"
_WAITING = """
SELECT status, reason, detail, count(*) FROM messaging_delivery
WHERE status NOT IN ('SENT', 'DELIVERED', 'FAILED') GROUP BY 1, 2, 3
"""


class Sink:
    """A mail server in a process of its own, which writes down the Message-ID of each mail."""

    def __init__(self, folder: Path) -> None:
        self.port, self.ids = free_port(), folder / "received"
        self.ids.touch()
        command = [sys.executable, "-m", "bench.sinks"]
        command += ["--port", str(self.port), "--ids", str(self.ids)]
        self.process = subprocess.Popen(command, cwd=ROOT)

    def received(self) -> "Counter[str]":
        """Count what came, by delivery."""
        lines = self.ids.read_text().split()
        return Counter(line.partition("@")[0] for line in lines)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Traffic:
    """A program that sends all the time, and again with the same key until it has its 202."""

    def __init__(self, service: Service, sink: Sink) -> None:
        self.sink = sink
        self.demo = service.demo()
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {service.token(self.demo)}"
        self.accepted: list[str] = []
        self.odd: list[str] = []
        """Refusals that no client should see."""
        self.number = 0
        self._stop = threading.Event()
        self.answered_at = self.received_at = time.monotonic()
        self.outage = self.silence = 0.0
        """The longest times without a 202, and without a mail at the sink."""

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Send while the block runs, and end what was begun."""
        self._stop.clear()
        self.outage = self.silence = 0.0
        self.answered_at = self.received_at = time.monotonic()
        threads = [threading.Thread(target=each) for each in (self._send, self._watch)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(MEND_SECONDS)
                assert not thread.is_alive(), "no 202 for three minutes"

    def send(self, count: int = BULK, **more: Any) -> list[str] | None:
        """Send a bulk until it is accepted; return the messages' ids, or None when told to stop."""
        self.number += 1
        until = time.monotonic() + MEND_SECONDS
        while time.monotonic() < until:
            try:
                answer = self.session.post(
                    f"{self.demo['base_url']}/messages/bulk",
                    json={"messages": [note(self.demo, place, **more) for place in range(count)]},
                    headers={"Idempotency-Key": f"bulk-{self.number}"},
                    timeout=10,
                )
            except requests.RequestException:
                time.sleep(0.1)
                continue
            if answer.status_code == 202:
                accepted = [result["messageId"] for result in answer.json()["results"]]
                self.accepted += accepted
                self.outage = max(self.outage, time.monotonic() - self.answered_at)
                self.answered_at = time.monotonic()
                return accepted
            # 409 is its own request, which lost its connection and is still under way.
            if answer.status_code not in (409, 429, 503):
                self.odd.append(answer.text)
            time.sleep(0.1)
        return None

    def _send(self) -> None:
        while not self._stop.is_set():
            scheduled = self.number % SCHEDULED_EVERY == 0
            self.send(**({"schedule": {"mode": "AT", "at": soon(1)}} if scheduled else {}))
            self._stop.wait(EVERY_SECONDS)

    def _watch(self) -> None:
        size = self.sink.ids.stat().st_size
        while not self._stop.wait(0.05):
            before, size = size, self.sink.ids.stat().st_size
            if size != before:
                self.silence = max(self.silence, time.monotonic() - self.received_at)
                self.received_at = time.monotonic()
        self.silence = max(self.silence, time.monotonic() - self.received_at)


def soon(seconds: float) -> str:
    """Write the instant that is so many seconds from now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds + 1))


@dataclass
class Account:
    """What became of the messages that were accepted around one fault."""

    fault: str
    accepted: int
    received: int
    outage: float
    silence: float
    lost: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Deliveries that ended without being sent, with their reasons."""
    doubled: dict[str, int] = field(default_factory=dict)
    """Deliveries that came more than once: how often too often."""
    inexcusable: list[str] = field(default_factory=list)
    """Those of them no attempt of which was in doubt."""
    odd: list[str] = field(default_factory=list)
    """Answers that were neither 202 nor a refusal that says to try again."""


def endure(service: Service, sink: Sink, traffic: Traffic, fault: Fault) -> Account:
    """Send around a fault until all that was accepted has been decided; return the account."""
    already, begun = sink.received(), len(traffic.accepted)
    traffic.odd = []
    with traffic.flowing():
        time.sleep(BEFORE_SECONDS)
        fault.inflict(service)
        count = len(traffic.accepted)
        wait_until(lambda: len(traffic.accepted) > count, "nothing is accepted")
        time.sleep(AFTER_SECONDS)
    accepted = set(traffic.accepted[begun:])
    wait_until(lambda: not sql(service, _WAITING), lambda: sql(service, _WAITING))
    rows = [row for row in sql(service, _DELIVERIES) if row[1] in accepted]
    counts = sink.received() - already
    mine = {row[0]: counts[row[0]] for row in rows}
    doubled = {key: count - 1 for key, count in mine.items() if count > 1}
    in_doubt = {key for (key,) in sql(service, IN_DOUBT)}
    known = {row[1] for row in rows}
    failed = [(row[0], row[3]) for row in rows if row[2] == "FAILED"]
    ended = {key for key, _ in failed}
    return Account(
        fault.name,
        len(accepted),
        sum(count > 0 for count in mine.values()),
        traffic.outage,
        traffic.silence,
        sorted(accepted - known) + [k for k, count in mine.items() if not count and k not in ended],
        failed,
        doubled,
        sorted(set(doubled) - in_doubt),
        traffic.odd,
    )


def wait_until(condition: Callable[[], Any], what: Any) -> None:
    until = time.monotonic() + MEND_SECONDS
    while not condition():
        assert time.monotonic() < until, what() if callable(what) else what
        time.sleep(0.2)


def sql(service: Service, statement: str) -> list[tuple[Any, ...]]:
    """Ask the database, again while it is starting."""
    until = time.monotonic() + MEND_SECONDS
    while True:
        try:
            return service.sql(statement)
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
