"""Windows in flight: handed over in sending threads, waited for a short while, then left behind.

A window has parts, and a part has a thread with connections of its own. An account that is slow, or
that holds conversations of its own, is a part; all others are one, since threads that work at once
take the processor from each other. The loop of `deliver` waits for all parts, at most for the
patience. Then it goes on with what was answered, and what was not stays in flight: its outcomes are
stored by `left_behind` when they come.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from time import monotonic

import structlog

from messaging.delivery import late_outcomes
from messaging.delivery.accounts import concurrency
from messaging.delivery.late_outcomes import Then
from messaging.delivery.next_steps import Sending, Shot
from messaging.policy.organization_policy import Account
from rme.core.outcomes import NOT_TRIED, Outcome, Unknown
from rme.core.process.threads import Threads
from rme.core.provider import Dispatch, Progress, Provider, send_together
from rme.transport import Transport

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
        by_part: dict[int | None, list[Shot]] = defaultdict(list)
        for sending in sendings:
            for shot in sending.shots:
                by_part[_part_of(shot.account)].append(shot)
        self.parts = [Part(self, shots) for shots in by_part.values()]

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
            late_outcomes.store_late(ended, self.then)


class Part:
    """The attempts of a window that one thread makes: by one account, or by several."""

    def __init__(self, window: Window, shots: Sequence[Shot]) -> None:
        self.window, self.shots = window, shots
        self.patience = max(concurrency.patience(shot.account) for shot in shots)
        self.left: list[Account] = []
        """The accounts that have left sends behind, and count this part as theirs."""
        self.begun = self.ended = False

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
            own = transport.for_worker(
                number, start_timeout=self.patience, streams=concurrency.STREAMS
            )
            outcomes = self._send(own, lambda known: self._note(known, started))
            self._note(list(enumerate(outcomes)), started)
        except Exception:
            ids = sorted({shot.account.id or 0 for shot in self.shots})
            log.exception("deliver.provider", account_ids=ids)
            failed = Unknown("the provider failed")
            self._note([(place, failed) for place in range(len(self.shots))], started)
        except BaseException as error:  # noqa: BLE001 (the process is to end: its loop raises it)
            self.window.error = error
            self.window.over.set()
        finally:
            with self.window.lock:
                self.ended = True
                for account in self.left:
                    concurrency.part_ended(account)

    def _send(self, transport: Transport, progress: Progress) -> list[Outcome]:
        """Return the outcomes in the order of the attempts."""
        dispatches: list[tuple[Provider, Dispatch]] = []
        for shot in self.shots:
            provider = shot.account.provider
            assert provider is not None  # only active accounts are routes
            url = shot.account.callback_url
            dispatches.append((provider, Dispatch(shot.attempt_id, shot.content, url)))
        first = dispatches[0][0]
        if first.sends_requests:
            return send_together(dispatches, transport, progress)
        return first.send([dispatch for _, dispatch in dispatches], transport, progress)

    def _note(self, known: Sequence[tuple[int, Outcome]], started: float) -> None:
        milliseconds = int((monotonic() - started) * 1000)
        self.window.note([(self.shots[place], said) for place, said in known], milliseconds)

    def settle(self) -> None:
        """Tell each account's limit how the part went. What no thread has begun is given back.

        The window's lock is held.
        """
        if not self.begun:
            for shot in self.shots:
                if shot.outcome is None:
                    shot.outcome, shot.latency_ms = NOT_TRIED, 0
                    self.window.awaited -= 1
            return
        by_account: dict[int, list[Shot]] = defaultdict(list)
        for shot in self.shots:
            by_account[id(shot.account)].append(shot)
        for shots in by_account.values():
            self._settle(shots[0].account, shots)

    def _settle(self, account: Account, shots: Sequence[Shot]) -> None:
        left = sum(shot.outcome is None for shot in shots)
        given_back = sum(shot.outcome is NOT_TRIED for shot in shots)
        if left or given_back:
            concurrency.left_behind(account, len(shots) - left - given_back, left)
        else:
            concurrency.answered_in_time(account, len(shots))
        if left:
            self.left.append(account)


def _part_of(account: Account) -> int | None:
    """Return what the attempts of a part have in common: an account, or none of their own."""
    together = account.provider is not None and account.provider.sends_requests
    return None if together and not concurrency.is_slow(account) else id(account)


def _is_answered(sending: Sending) -> bool:
    return all(shot.outcome is not None for shot in sending.shots)
