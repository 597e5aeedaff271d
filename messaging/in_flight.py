"""Windows in flight: handed over in sending threads, waited for a short while, then left behind.

A window's sends by one account are a part, and a part has a thread with connections of its own. The
loop of `deliver` waits for all parts, at most for the patience. Then it goes on with what was
answered, and what was not stays in flight: its outcomes are stored by `left_behind` when they come.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from time import monotonic

import structlog

from messaging import concurrency, left_behind
from messaging.left_behind import Then
from messaging.outcome import Sending, Shot
from messaging.policy import Account
from messaging.providers.base import Dispatch
from rme.core.outcomes import NOT_TRIED, Outcome, Unknown
from rme.core.threads import Threads
from rme.core.transport import Transport

log = structlog.get_logger(__name__)

MARGIN_SECONDS = 0.05
"""The threads have so long to hand over what was answered when their patience ends."""

_threads = Threads(concurrency.THREADS, "sending")


os.register_at_fork(after_in_child=_threads.forget)


class Window:
    """Deliveries that leave at once, and what has become of their attempts so far."""

    def __init__(self, sendings: Sequence[Sending], until: float, then: Then) -> None:
        """Take deliveries whose attempts are stored. Nothing begins after `until` (monotonic)."""
        self.sendings, self.until, self.then = sendings, until, then
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.is_left_behind = False
        self.error: BaseException | None = None
        self.owners = {shot.attempt_id: each for each in sendings for shot in each.shots}
        self.awaited = len(self.owners)
        by_account: dict[int, list[Shot]] = defaultdict(list)
        for sending in sendings:
            for shot in sending.shots:
                by_account[id(shot.account)].append(shot)
        self.parts = [Part(self, shots) for shots in by_account.values()]

    def send(self, transport: Transport) -> list[Sending]:
        """Hand the window over, and return the deliveries that were answered in time.

        The others are no longer the caller's. Raises what ended a sending thread.
        """
        for part in self.parts:
            _threads.submit(partial(part.run, transport))
        self.over.wait(max(part.patience for part in self.parts) + MARGIN_SECONDS)
        with self.lock:
            if self.error:
                raise self.error
            for part in self.parts:
                part.settle()
            answered = [each for each in self.sendings if _is_answered(each)]
            self.is_left_behind = True
            concurrency.add_doubt(len(self.sendings) - len(answered))
        return answered

    def note(self, known: Sequence[tuple[Shot, Outcome]], milliseconds: int) -> None:
        """Note outcomes as they come. What was left behind is stored once all of it is known."""
        with self.lock:
            late: dict[int, Sending] = {}
            for shot, outcome in known:
                if shot.outcome is not None:
                    continue
                shot.outcome, shot.latency_ms = outcome, milliseconds
                self.awaited -= 1
                if self.is_left_behind:
                    concurrency.answered_late(shot.account, outcome)
                    owner = self.owners[shot.attempt_id]
                    late[id(owner)] = owner
            if not self.awaited:
                self.over.set()
        ended = [each for each in late.values() if _is_answered(each)]
        if ended:
            left_behind.store_late(ended, self.then)


class Part:
    """The attempts of a window that go by one account."""

    def __init__(self, window: Window, shots: Sequence[Shot]) -> None:
        self.window, self.shots = window, shots
        self.account: Account = shots[0].account
        self.patience = concurrency.patience(self.account)
        self.begun = self.counts = self.ended = False

    def run(self, transport: Transport, number: int) -> None:
        """Send, in the sending thread of that number."""
        started = monotonic()
        with self.window.lock:
            if self.window.is_left_behind or started > self.window.until:
                self.ended = True  # its outcomes are there: `settle` has given it back
                given_back = self.window.is_left_behind
            else:
                self.begun, given_back = True, False
        if given_back:
            return
        if not self.begun:
            self._note([(place, NOT_TRIED) for place in range(len(self.shots))], started)
            return
        try:
            own = transport.sibling(number, patience=self.patience, streams=concurrency.STREAMS)
            provider = self.account.provider
            assert provider is not None  # only active accounts are routes
            url = self.account.callback_url
            dispatches = [Dispatch(shot.attempt_id, shot.content, url) for shot in self.shots]
            outcomes = provider.send(dispatches, own, lambda known: self._note(known, started))
            self._note(list(enumerate(outcomes)), started)
        except Exception:
            log.exception("deliver.provider", account_id=self.account.id)
            failed = Unknown("the provider failed")
            self._note([(place, failed) for place in range(len(self.shots))], started)
        except BaseException as error:  # noqa: BLE001 (the process is to end: its loop raises it)
            self.window.error = error
            self.window.over.set()
        finally:
            with self.window.lock:
                self.ended = True
                if self.counts:
                    concurrency.part_ended(self.account)

    def _note(self, known: Sequence[tuple[int, Outcome]], started: float) -> None:
        milliseconds = int((monotonic() - started) * 1000)
        self.window.note([(self.shots[place], said) for place, said in known], milliseconds)

    def settle(self) -> None:
        """Tell the account's limit how the part went. What no thread has begun is given back.

        The window's lock is held.
        """
        if not self.begun:
            for shot in self.shots:
                if shot.outcome is None:
                    shot.outcome, shot.latency_ms = NOT_TRIED, 0
                    self.window.awaited -= 1
            return
        left = sum(shot.outcome is None for shot in self.shots)
        given_back = sum(shot.outcome is NOT_TRIED for shot in self.shots)
        if left or given_back:
            answered = len(self.shots) - left - given_back
            concurrency.left_behind(self.account, answered, left)
            self.counts = left > 0
        else:
            concurrency.answered_in_time(self.account, len(self.shots))


def _is_answered(sending: Sending) -> bool:
    return all(shot.outcome is not None for shot in sending.shots)
