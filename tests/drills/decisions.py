"""A program that records decisions of consent all the time, each until it has its 201."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests

from tests.drills.callers import LAST_SECONDS, Callers

PAUSE_SECONDS = 0.05
CHANNEL, CATEGORY = "EMAIL", "MARKETING"
LEDGER = f"""
SELECT id::text FROM messaging_consententry
WHERE organization_id = '{{}}' AND channel = '{CHANNEL}' AND category = '{CATEGORY}'
"""
STATUSES = ("OPTED_IN", "OPTED_OUT")


@dataclass(frozen=True)
class Decision:
    """A decision that has its 201."""

    entry: str
    """The id of the ledger's entry."""
    person: str
    status: str
    in_doubt: int
    """Calls before it that were neither answered 201 nor refused: they may have made an entry."""


@dataclass(frozen=True)
class DecisionsAccount:
    """What became of the decisions."""

    made: int
    lost: int
    """Decisions that the ledger does not have."""
    doubled: int
    """Entries beyond the decisions, and beyond what calls in doubt may have recorded."""
    differ: int
    """People of whom another decision is shown than their last one."""


class Decisions:
    """The program, with the tokens of other callers, and the decisions that it recorded."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._stop = threading.Event()
        self.made: list[Decision] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record while the block runs; end what was begun."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def account(self, ledger: set[str]) -> DecisionsAccount:
        """Return the account, by the ids of the entries that the organization's ledger has."""
        made = {each.entry for each in self.made}
        in_doubt = sum(each.in_doubt for each in self.made)
        last = {each.person: each.status for each in self.made}
        return DecisionsAccount(
            made=len(made),
            lost=len(made - ledger),
            doubled=max(0, len(ledger - made) - in_doubt),
            differ=len(last.items() - self._shown().items()),
        )

    def _shown(self) -> dict[str, str]:
        answer = self._callers.get("/consent", limit=200)
        return {
            each["contactId"]: each["status"]
            for each in answer.json()["consent"]
            if (each["channel"], each["category"]) == (CHANNEL, CATEGORY)
        }

    def _run(self) -> None:
        people = self._callers.demo["contact_ids"]
        for number in itertools.count():
            # Each person decides the other way each time.
            person = people[number % len(people)]
            self.made.append(self._record(person, STATUSES[number // len(people) % 2]))
            if self._stop.wait(PAUSE_SECONDS):
                return

    def _record(self, person: str, status: str) -> Decision:
        body = {"contactId": person, "channel": CHANNEL, "category": CATEGORY, "status": status}
        in_doubt, until = 0, time.monotonic() + LAST_SECONDS
        while time.monotonic() < until:
            try:
                answer = self._callers.post("/consent", body)
            except requests.RequestException:
                in_doubt += 1
            else:
                if answer.status_code == 201:
                    return Decision(answer.json()["id"], person, status, in_doubt)
                in_doubt += answer.status_code != 503
            time.sleep(PAUSE_SECONDS)
        raise AssertionError(f"no 201 in {LAST_SECONDS:.0f} s")
