"""Callers that send through any of the web processes, and keep account of the answers."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.service import note

THREADS = 3
PAUSE_SECONDS = 0.05
MEND_SECONDS = 60
BULK = 10
TRY_AGAIN = (409, 429, 503)


@dataclass
class Callers:
    """Callers of several threads; `ports` are those of the web processes that are up."""

    demo: dict[str, Any]
    token: str
    ports: Callable[[], list[int]]
    phase: str = ""
    accepted: dict[str, str] = field(default_factory=dict)
    """The phase in which each message was accepted."""
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many answers there were by phase and kind: 202, replay, read, 5xx, other."""
    odd: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop, self._lock = threading.Event(), threading.Lock()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Call while the block runs."""
        threads = [threading.Thread(target=self._run, args=(number,)) for number in range(THREADS)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._stop.set()
            for each in threads:
                each.join(2 * MEND_SECONDS)

    def silent_phases(self, phases: Iterable[str]) -> list[str]:
        """Return the phases in which no call was accepted, none repeated, or nothing read."""
        return [
            phase
            for phase in phases
            if not all(self.answers[phase, kind] for kind in ("202", "replay", "read"))
        ]

    def _run(self, thread: int) -> None:
        """Call until told to stop; what ends a caller earlier is an odd answer."""
        try:
            self._call(thread)
        except Exception as error:
            self._note(False, "other", f"caller {thread} ended: {error!r}")

    def _call(self, thread: int) -> None:
        number, drawn = 0, random.Random(thread)
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {self.token}"
        while not self._stop.is_set():
            number += 1
            key, phase = f"caller-{thread}-{number}", self.phase
            path, body = self._request(number)
            ids = self._send(session, drawn, path, body, key)
            with self._lock:
                self.accepted.update(dict.fromkeys(ids, phase))
                self.answers[phase, "202"] += 1
            if number % 4 == 0:
                again = self._send(session, drawn, path, body, key)
                self._note(again == ids, "replay", f"{key}: {ids} and {again}")
            if number % 3 == 0:
                self._read(session, drawn, ids[0])
            time.sleep(PAUSE_SECONDS)

    def _request(self, number: int) -> tuple[str, dict[str, Any]]:
        if number % 10 == 0:
            return "/messages/bulk", {"messages": [note(self.demo, i) for i in range(BULK)]}
        body = note(self.demo, number)
        if number % 5 == 1:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
            body["schedule"] = {"mode": "AT", "at": at}
        return "/messages", body

    def _send(
        self,
        session: requests.Session,
        drawn: random.Random,
        path: str,
        body: dict[str, Any],
        key: str,
    ) -> list[str]:
        """Send to one web process or another until it is accepted; return the messages' ids."""
        until = time.monotonic() + MEND_SECONDS
        while time.monotonic() < until:
            answer = self._request_once(
                session, drawn, "POST", path, json=body, headers={"Idempotency-Key": key}
            )
            if answer is not None and answer.status_code == 202:
                found = answer.json()
                return [each["messageId"] for each in found.get("results", [found])]
            if answer is not None and answer.status_code not in TRY_AGAIN:
                self._note(False, "other", f"{answer.status_code} {answer.text[:300]}")
            time.sleep(0.1)
        raise AssertionError(f"{key} is not accepted in a minute")

    def _read(self, session: requests.Session, drawn: random.Random, message: str) -> None:
        answer = self._request_once(session, drawn, "GET", f"/messages/{message}")
        if answer is not None and answer.status_code != 429:
            self._note(
                answer.status_code == 200, "read", f"{answer.status_code} {answer.text[:300]}"
            )

    def _request_once(
        self,
        session: requests.Session,
        drawn: random.Random,
        method: str,
        path: str,
        **options: Any,
    ) -> requests.Response | None:
        """Return the answer; None if the process was just going, as a proxy tries another then."""
        port = drawn.choice(self.ports())
        try:
            answer = session.request(
                method, f"http://127.0.0.1:{port}/rme/v1{path}", timeout=30, **options
            )
        except requests.ConnectionError:
            return None
        if answer.status_code >= 500:
            self._note(False, "5xx", f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer

    def _note(self, good: bool, kind: str, what: str) -> None:
        with self._lock:
            self.answers[self.phase, kind] += 1
            if not good:
                self.odd.append(f"{self.phase}: {what}")
