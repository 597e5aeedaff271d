"""Programs that send all the time, each request with a key of its own until it has its 202."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.faults.accounting import soon
from tests.service import Service, note

THREADS = 4
PAUSE_SECONDS = 0.03
BULK, BULK_EVERY, SCHEDULED_EVERY = 20, 10, 10
REQUEST_SECONDS = 15.0
EXPECTED = (202, 409, 429, 502, 503)
"""Statuses after which a caller repeats its request, and 202. 409: its own try is under way yet."""
LAST_SECONDS = 90.0
"""How long a request that was begun is repeated after the end."""


@dataclass
class Accepted:
    """A request that has its 202."""

    key: str
    body: dict[str, Any]
    messages: list[str]
    begun: float
    """When the try began that was answered so; of the monotonic clock."""
    at: float


@dataclass
class Callers:
    """The programs, and what they were answered."""

    service: Service
    name: str
    accepted: list[Accepted] = field(default_factory=list)
    answers: "Counter[str]" = field(default_factory=Counter)
    """How often each status, or error of a connection, came."""
    odd: set[str] = field(default_factory=set)
    """Answers that no such caller should see."""

    def __post_init__(self) -> None:
        self.demo = self.service.demo()
        self._headers = {"Authorization": f"Bearer {self.service.token(self.demo)}"}
        self._numbers = itertools.count()
        self._stop = threading.Event()

    @property
    def messages(self) -> set[str]:
        return {message for each in self.accepted for message in each.messages}

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Send while the block runs; end what was begun."""
        threads = [threading.Thread(target=self._call) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _call(self) -> None:
        session = requests.Session()
        while not self._stop.is_set():
            number = next(self._numbers)
            if found := self._persist(session, f"{self.name}-{number}", self._body(number)):
                self.accepted.append(found)
            self._stop.wait(PAUSE_SECONDS)

    def _persist(
        self, session: requests.Session, key: str, body: dict[str, Any]
    ) -> Accepted | None:
        until = None
        while until is None or time.monotonic() < until:
            if self._stop.is_set() and until is None:
                until = time.monotonic() + LAST_SECONDS
            begun = time.monotonic()
            messages = self.send(session, key, body)
            if messages is not None:
                return Accepted(key, body, messages, begun, time.monotonic())
            time.sleep(0.1)
        return None

    def send(self, session: requests.Session, key: str, body: dict[str, Any]) -> list[str] | None:
        """Send a request once; return the ids of its messages if it is answered 202."""
        path = "/messages/bulk" if "messages" in body else "/messages"
        try:
            answer = session.post(
                f"{self.demo['base_url']}{path}",
                json=body,
                headers={**self._headers, "Idempotency-Key": key},
                timeout=REQUEST_SECONDS,
            )
        except requests.RequestException as error:
            self.answers[type(error).__name__] += 1
            return None
        self.answers[str(answer.status_code)] += 1
        if answer.status_code not in EXPECTED:
            self.odd.add(f"{answer.status_code} {answer.text}")
        if answer.status_code != 202:
            return None
        found = answer.json()
        return [each["messageId"] for each in found.get("results", [found])]

    def accept_one(self) -> None:
        """Send one message until it is accepted."""
        session = requests.Session()
        number = next(self._numbers)
        while self.send(session, f"{self.name}-{number}", note(self.demo, number)) is None:
            time.sleep(0.1)

    def post(self, path: str, body: dict[str, Any]) -> requests.Response:
        """Call a path below /rme/v1."""
        url = f"{self.demo['base_url']}{path}"
        return requests.post(url, json=body, headers=self._headers, timeout=REQUEST_SECONDS)

    def get(self, path: str, **query: str | int) -> requests.Response:
        """Read a path below /rme/v1."""
        url = f"{self.demo['base_url']}{path}"
        return requests.get(url, query, headers=self._headers, timeout=REQUEST_SECONDS)

    def _body(self, number: int) -> dict[str, Any]:
        if number % BULK_EVERY == 0:
            return {"messages": [note(self.demo, number + place) for place in range(BULK)]}
        later = {"schedule": {"mode": "AT", "at": soon(1)}}
        return note(self.demo, number) | (later if number % SCHEDULED_EVERY == 1 else {})
