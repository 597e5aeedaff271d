"""Windows in flight: handed over by sending threads, and waited for a short while.

A window has parts, and each part has a thread with connections of its own. An account that is slow,
or that holds sessions of its own (SMPP, push), is a part; all others are one, since threads that
work at once take the processor from each other. The send loop waits for all parts, a few times as
long as their accounts usually take. Then it continues with the deliveries that were answered. The
others stay in flight, and `late_outcomes` stores their outcomes when they come.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic

import structlog

from messaging.delivery.accounts import concurrency
from messaging.delivery.accounts.concurrency import LeftSends
from messaging.delivery.late_outcomes import FollowUp
from messaging.delivery.outgoing import OutgoingDelivery, SendAttempt
from messaging.delivery.sending_process import SendingProcess
from messaging.policy.organization_policy import Account
from messaging.telemetry import spans
from rme.core.outcomes import NOT_TRIED, Outcome, Unknown
from rme.core.process.threads import end_process
from rme.core.provider import Dispatch, Progress, Provider, send_together
from rme.core.telemetry import tracing
from rme.transport import Transport

log = structlog.get_logger(__name__)

MARGIN = 1.5
"""A window waits for so many times the time to answer: threads hand in what was answered."""


class Window:
    """Deliveries that leave together, and the outcomes of their attempts so far."""

    def __init__(
        self,
        deliveries: Sequence[OutgoingDelivery],
        until: float,
        follow_up: FollowUp,
        process: SendingProcess,
    ) -> None:
        """Take deliveries whose attempts are stored. Nothing begins after `until` (monotonic)."""
        self.deliveries, self.until, self.follow_up = deliveries, until, follow_up
        self.process, self.load = process, process.load
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

    def send(self, transport: Transport) -> list[OutgoingDelivery]:
        """Hand the window over, and return the deliveries that were answered in time.

        The others are no longer the caller's. Raises what ended a sending thread.
        """
        parts = self._split(transport.per_host)
        for part in parts:
            self.process.threads.submit(partial(part.run, transport))
        self.complete.wait(MARGIN * max(part.answer_seconds for part in parts))
        with self.lock:
            if self.error:
                raise self.error
            for part in parts:
                part.close()
            answered_deliveries = [each for each in self.deliveries if _is_answered(each)]
            self.has_gone_on = True
            self.load.add_in_doubt(len(self.deliveries) - len(answered_deliveries))
        return answered_deliveries

    def count_begun(self, account: Account) -> int:
        """Return how many of an account's attempts began, in all parts."""
        return sum(
            attempt.account is account and attempt.outcome is not NOT_TRIED
            for delivery in self.deliveries
            for attempt in delivery.attempts
        )

    def _split(self, connections: int) -> "list[WindowPart]":
        """Return the parts; `connections`: how many a thread has to one host. The window doesn't
        keep the parts, since they keep it: only the cycle collector would then free it, with all
        sent mails.
        """
        by_part: dict[int | None, list[SendAttempt]] = defaultdict(list)
        attempts = [attempt for delivery in self.deliveries for attempt in delivery.attempts]
        accounts = {id(attempt.account): attempt.account for attempt in attempts}
        # once for each account, and not for each of its attempts
        part_keys = {key: self._part_key(account) for key, account in accounts.items()}
        for attempt in attempts:
            by_part[part_keys[id(attempt.account)]].append(attempt)
        return [
            WindowPart(self, chunk, 0 if place else len(of_key))
            for key, of_key in by_part.items()
            for place, chunk in enumerate(
                self._chunks(of_key, connections if key is not None else len(of_key))
            )
        ]

    def _part_key(self, account: Account) -> int | None:
        """Return what a part's attempts have in common: an account, or None for the shared part."""
        is_shared = account.provider is not None and account.provider.sends_requests
        return None if is_shared and not self.load.is_slow(account) else id(account)

    def _chunks(self, attempts: Sequence[SendAttempt], size: int) -> list[Sequence[SendAttempt]]:
        """Divide the attempts of a slow account among threads, each with `size` connections. One
        thread would leave the others' connections unused, and the account would seem to take no
        more.
        """
        room = self.load.free_parts(attempts[0].account)
        starts = range(0, len(attempts), size)[:room]
        return [attempts[i : i + size if i < starts[-1] else None] for i in starts]

    def add_outcomes(self, part: "WindowPart", outcomes: Iterable[tuple[int, Outcome]]) -> None:
        """Set outcomes of a part as they come, by place. A late delivery is stored once all its
        outcomes are known.
        """
        seconds = monotonic() - part.started
        with self.lock:
            late_deliveries: dict[int, OutgoingDelivery] = {}
            for place, outcome in outcomes:
                attempt = part.attempts[place]
                if attempt.outcome is not None:
                    continue
                attempt.outcome, attempt.latency_ms = outcome, int(seconds * 1000)
                self.awaited -= 1
                if self.has_gone_on:
                    self.load.answered_late(part.left[id(attempt.account)], outcome, seconds)
                    delivery = self.delivery_of[attempt.id]
                    late_deliveries[id(delivery)] = delivery
            if not self.awaited:
                self.complete.set()
        ended = [each for each in late_deliveries.values() if _is_answered(each)]
        if ended:
            self.process.late_outcomes.store_late(ended, self.follow_up)


class WindowPart:
    """The attempts of a window that one thread makes: by one account, or by several."""

    def __init__(self, window: Window, attempts: Sequence[SendAttempt], of_window: int) -> None:
        """Take attempts. `of_window`: how many the window has for a slow account, but 0 in all of
        its parts but one, so that the account's limit grows once per window.
        """
        self.window, self.attempts, self.of_window = window, attempts, of_window
        self.load = window.load
        accounts = {id(each.account): each.account for each in attempts}
        self.answer_seconds = max(map(self.load.answer_seconds, accounts.values()))
        self.is_slow = self.load.is_slow(attempts[0].account)
        self.left: dict[int, LeftSends] = {}
        """What the accounts, by identity, left unanswered when the loop went on."""
        self.started, self.begun = monotonic(), False

    def run(self, transport: Transport, number: int) -> None:
        """Send, in the sending thread of that number."""
        with self.window.lock:
            if self.window.has_gone_on:  # `close` has set its outcomes
                return
            self.started = monotonic()
            self.begun = self.started <= self.window.until
        if not self.begun:
            self._add_outcomes([NOT_TRIED] * len(self.attempts))
            return
        try:
            worker_transport = transport.for_worker(
                number, start_timeout=self.answer_seconds, streams=concurrency.STREAMS
            )
            self._add_outcomes(
                self._send(
                    worker_transport, lambda outcomes: self.window.add_outcomes(self, outcomes)
                )
            )
        except MemoryError as error:
            end_process("a send had no memory", error=str(error))
        except Exception:
            ids = sorted({attempt.account.id or 0 for attempt in self.attempts})
            log.exception("deliver.provider", account_ids=ids)
            self._add_outcomes([Unknown("the provider failed")] * len(self.attempts))
        except BaseException as error:  # noqa: BLE001 (the process is to end: its loop raises it)
            self.window.error = error
            self.window.complete.set()
        finally:
            with self.window.lock:
                for left_sends in self.left.values():
                    self.load.part_ended(left_sends.account)

    def _send(self, transport: Transport, progress: Progress) -> list[Outcome]:
        """Return the outcomes in the order of the attempts."""
        self._begin_spans()
        dispatches: list[tuple[Provider, Dispatch]] = []
        for attempt in self.attempts:
            provider = attempt.account.provider
            assert provider is not None  # only active accounts are routes
            url = attempt.account.callback_url
            context = attempt.span.traceparent if attempt.span else ""
            dispatches.append((provider, Dispatch(attempt.id, attempt.content, url, context)))
        first = dispatches[0][0]
        if first.sends_requests:
            return send_together(dispatches, transport, progress)
        return first.send([dispatch for _, dispatch in dispatches], transport, progress)

    def _begin_spans(self) -> None:
        """Begin a span for each attempt whose message is traced; its outcome ends it."""
        if (tracer := tracing.tracer()) is None:
            return
        for attempt in self.attempts:
            claimed = self.window.delivery_of[attempt.id].claimed
            if claimed.traceparent:
                attempt.span = spans.begin_attempt(tracer, claimed, attempt.id, attempt.account)

    def _add_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Set the outcomes of all attempts that have none yet."""
        self.window.add_outcomes(self, enumerate(outcomes))

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
        count = self.of_window if self.is_slow else len(attempts)
        if unanswered:
            left_sends = self.load.left_unanswered(account, count, unanswered)
            self.left[id(account)] = left_sends
        if not unanswered and not not_tried:
            seconds = max(attempt.latency_ms or 0 for attempt in attempts) / 1000
            self.load.answered_in_time(account, count, seconds)
        elif not self.is_slow:
            self.load.cut_limit(account, len(attempts) - unanswered - not_tried)
        elif not_tried:  # what began has not been waited for
            self.load.cut_limit(account, self.window.count_begun(account))


def _is_answered(delivery: OutgoingDelivery) -> bool:
    return not [attempt for attempt in delivery.attempts if attempt.outcome is None]
