"""Windows in flight: handed over by sending threads, and waited for a short while.

A window has parts, and each part has a thread with connections of its own. An account that is slow,
or that holds sessions of its own (SMPP, push), is a part; all others are one, since threads that
work at once take the processor from each other. The send loop waits for all parts, at most for
`answer_seconds`. Then it continues with the deliveries that were answered. The others stay in
flight, and `late_outcomes` stores their outcomes when they come.
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
from messaging.delivery.late_outcomes import FollowUp
from messaging.delivery.next_steps import OutgoingDelivery, SendAttempt
from messaging.policy.organization_policy import Account
from rme.core.outcomes import NOT_TRIED, Outcome, Unknown
from rme.core.process.threads import Threads
from rme.core.provider import Dispatch, Progress, Provider, send_together
from rme.transport import Transport

log = structlog.get_logger(__name__)

MARGIN_SECONDS = 0.05
"""How long the threads have to hand in the answers when the time to wait is over."""

_threads = Threads(concurrency.THREADS, "sending")


os.register_at_fork(after_in_child=_threads.forget)


class Window:
    """Deliveries that leave together, and the outcomes of their attempts so far."""

    def __init__(
        self, deliveries: Sequence[OutgoingDelivery], until: float, follow_up: FollowUp
    ) -> None:
        """Take deliveries whose attempts are stored. Nothing begins after `until` (monotonic)."""
        self.deliveries, self.until, self.follow_up = deliveries, until, follow_up
        self.lock = threading.Lock()
        self.complete = threading.Event()
        """Set once all outcomes are known, or the process is to end."""
        self.has_gone_on = False
        """Whether the loop waits no more: outcomes are late from then on."""
        self.error: BaseException | None = None
        self.delivery_of = {
            attempt.id: delivery for delivery in deliveries for attempt in delivery.attempts
        }
        self.awaited = len(self.delivery_of)
        by_part: dict[int | None, list[SendAttempt]] = defaultdict(list)
        for delivery in deliveries:
            for attempt in delivery.attempts:
                by_part[_part_key(attempt.account)].append(attempt)
        self.parts = [WindowPart(self, attempts) for attempts in by_part.values()]

    def send(self, transport: Transport) -> list[OutgoingDelivery]:
        """Hand the window over, and return the deliveries that were answered in time.

        The others are no longer the caller's. Raises what ended a sending thread.
        """
        for part in self.parts:
            _threads.submit(partial(part.run, transport))
        self.complete.wait(max(part.answer_seconds for part in self.parts) + MARGIN_SECONDS)
        with self.lock:
            if self.error:
                raise self.error
            for part in self.parts:
                part.close()
            answered = [each for each in self.deliveries if _is_answered(each)]
            self.has_gone_on = True
            concurrency.add_in_doubt(len(self.deliveries) - len(answered))
        return answered

    def add_outcomes(self, known: Sequence[tuple[SendAttempt, Outcome]], milliseconds: int) -> None:
        """Set outcomes as they come. A late delivery is stored once all its outcomes are known."""
        with self.lock:
            late: dict[int, OutgoingDelivery] = {}
            for attempt, outcome in known:
                if attempt.outcome is not None:
                    continue
                attempt.outcome, attempt.latency_ms = outcome, milliseconds
                self.awaited -= 1
                if self.has_gone_on:
                    concurrency.answered_late(attempt.account, outcome)
                    delivery = self.delivery_of[attempt.id]
                    late[id(delivery)] = delivery
            if not self.awaited:
                self.complete.set()
        ended = [each for each in late.values() if _is_answered(each)]
        if ended:
            late_outcomes.store_late(ended, self.follow_up)


class WindowPart:
    """The attempts of a window that one thread makes: by one account, or by several."""

    def __init__(self, window: Window, attempts: Sequence[SendAttempt]) -> None:
        self.window, self.attempts = window, attempts
        self.answer_seconds = max(
            concurrency.answer_seconds(attempt.account) for attempt in attempts
        )
        self.slow_accounts: list[Account] = []
        """The accounts that left sends of this part unanswered, and count it as theirs."""
        self.begun = self.ended = False

    def run(self, transport: Transport, number: int) -> None:
        """Send, in the sending thread of that number."""
        started = monotonic()
        with self.window.lock:
            if self.window.has_gone_on or started > self.window.until:
                self.ended = True
                is_closed = self.window.has_gone_on  # `close` has set its outcomes
            else:
                self.begun, is_closed = True, False
        if is_closed:
            return
        if not self.begun:
            self._add_outcomes([(place, NOT_TRIED) for place in range(len(self.attempts))], started)
            return
        try:
            own = transport.for_worker(
                number, start_timeout=self.answer_seconds, streams=concurrency.STREAMS
            )
            outcomes = self._send(own, lambda known: self._add_outcomes(known, started))
            self._add_outcomes(list(enumerate(outcomes)), started)
        except Exception:
            ids = sorted({attempt.account.id or 0 for attempt in self.attempts})
            log.exception("deliver.provider", account_ids=ids)
            failed = Unknown("the provider failed")
            self._add_outcomes([(place, failed) for place in range(len(self.attempts))], started)
        except BaseException as error:  # noqa: BLE001 (the process is to end: its loop raises it)
            self.window.error = error
            self.window.complete.set()
        finally:
            with self.window.lock:
                self.ended = True
                for account in self.slow_accounts:
                    concurrency.part_ended(account)

    def _send(self, transport: Transport, progress: Progress) -> list[Outcome]:
        """Return the outcomes in the order of the attempts."""
        dispatches: list[tuple[Provider, Dispatch]] = []
        for attempt in self.attempts:
            provider = attempt.account.provider
            assert provider is not None  # only active accounts are routes
            url = attempt.account.callback_url
            dispatches.append((provider, Dispatch(attempt.id, attempt.content, url)))
        first = dispatches[0][0]
        if first.sends_requests:
            return send_together(dispatches, transport, progress)
        return first.send([dispatch for _, dispatch in dispatches], transport, progress)

    def _add_outcomes(self, known: Sequence[tuple[int, Outcome]], started: float) -> None:
        milliseconds = int((monotonic() - started) * 1000)
        outcomes = [(self.attempts[place], outcome) for place, outcome in known]
        self.window.add_outcomes(outcomes, milliseconds)

    def close(self) -> None:
        """Adapt the accounts' limits to the result; attempts that no thread began are NOT_TRIED.

        The caller holds the window's lock.
        """
        if not self.begun:
            for attempt in self.attempts:
                if attempt.outcome is None:
                    attempt.outcome, attempt.latency_ms = NOT_TRIED, 0
                    self.window.awaited -= 1
            return
        by_account: dict[int, list[SendAttempt]] = defaultdict(list)
        for attempt in self.attempts:
            by_account[id(attempt.account)].append(attempt)
        for attempts in by_account.values():
            self._adapt_limit(attempts[0].account, attempts)

    def _adapt_limit(self, account: Account, attempts: Sequence[SendAttempt]) -> None:
        unanswered = sum(attempt.outcome is None for attempt in attempts)
        not_tried = sum(attempt.outcome is NOT_TRIED for attempt in attempts)
        if unanswered or not_tried:
            answered = len(attempts) - unanswered - not_tried
            concurrency.left_unanswered(account, answered, unanswered)
        else:
            concurrency.answered_in_time(account, len(attempts))
        if unanswered:
            self.slow_accounts.append(account)


def _part_key(account: Account) -> int | None:
    """Return what the attempts of a part have in common: an account, or None for the shared one."""
    is_shared = account.provider is not None and account.provider.sends_requests
    return None if is_shared and not concurrency.is_slow(account) else id(account)


def _is_answered(delivery: OutgoingDelivery) -> bool:
    return all(attempt.outcome is not None for attempt in delivery.attempts)
