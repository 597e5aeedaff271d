"""The send loop: what was claimed leaves window by window.

No transaction is open across the network. One is committed before each window leaves: it has the
outcomes of the window before, the attempts that are about to be made, and the last check of the
gates. A worker that is killed leaves at most one window in doubt, and its attempts show which.
Attempts that the gates stop, which is rare, are removed before the others leave.

A window does not wait for its slowest send: what is not answered in time stays in flight (see
`in_flight`), and the next window is smaller by that. It holds deliveries of several organizations
where each has only a few, so that many small ones cost as little as one large one.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from time import monotonic

import structlog

from messaging.consent import gate_lock, gates
from messaging.delivery import accounts, prepare, record
from messaging.delivery.accounts import circuit_history
from messaging.delivery.claims import CLAIM_SECONDS, ClaimedBatch
from messaging.delivery.in_flight import Window
from messaging.delivery.late_outcomes import FollowUp
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.delivery.prepare import BatchProgress
from messaging.delivery.record import Answered
from messaging.delivery.sending_process import SendingProcess
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import Status, WaitReason
from messaging.store.attempts import AttemptOutcomes
from rme.core.db import clock, prepared_statements
from rme.transport import Transport

log = structlog.get_logger(__name__)

PAUSE_RECHECK = timedelta(seconds=60)
FILL_SECONDS = CLAIM_SECONDS / 2
"""What is rendered by then leaves, even if the window is not full."""
TURN_SECONDS = 1.5 * CLAIM_SECONDS
"""What has not been tried by then is released: other organizations have their turn."""
SHARE = 10
"""The least share of an organization in a window: its connections are its own."""


def deliver(
    batches: Sequence[ClaimedBatch],
    transport: Transport,
    process: SendingProcess,
    on_receipts: Callable[[Sequence[Receipt]], object],
    on_room: Callable[[], object] = tuple,
) -> dict[str, int]:
    """Send batches of one channel, all together; return how many were sent of each organization.

    Deliveries that were released do not count. `process` has what is in flight.
    `on_receipts` is called with the receipts that came
    with outcomes (the simulator's) once these are recorded, `on_room` when all late outcomes are
    stored and there is room for more.
    """
    if not batches:
        return {}
    return _SendLoop(batches, transport, process, FollowUp(on_receipts, on_room)).run()


class _SendLoop:
    """Sends batches. While it commits the outcomes of a window, it opens the next."""

    def __init__(
        self,
        batches: Sequence[ClaimedBatch],
        transport: Transport,
        process: SendingProcess,
        follow_up: FollowUp,
    ) -> None:
        self.transport, self.process, self.follow_up = transport, process, follow_up
        self.channel = batches[0].channel
        contacts = prepare.read_ahead(batches)
        self.batches = [
            BatchProgress(each, contacts.get(each.organization_id), process.renderer)
            for each in batches
        ]
        self.until = min(batch.until for batch in batches)
        self.turn_until = min(self.until, monotonic() + TURN_SECONDS)
        self.failing: set[int] = set()
        """The accounts that are tried after the others."""
        self.answered: list[Answered] = []
        """What the window before was answered, until it is recorded."""

    def run(self) -> dict[str, int]:
        try:
            while open_batches := [each for each in self.batches if each.is_open]:
                self._fill_window(open_batches)
                self._admit(open_batches)
                stopped = self._commit(open_batches)
                self._remove_attempts(open_batches, stopped)
                self._apply_outcomes(self._hand_over(open_batches))
        except BaseException:
            # It stays in doubt, and nothing leaves in its place until it is recorded.
            self.process.late_outcomes.store_again(self.answered, self.follow_up)
            raise
        return {each.batch.organization_id: each.sent_count for each in self.batches}

    # --- the steps, in their order --------------------------------------------------------------

    def _fill_window(self, batches: Sequence[BatchProgress]) -> None:
        """Fill the next window: with what fails over, and with a share for each organization."""
        for batch in batches:
            batch.set_decided_apart()
        free = self.process.load.window() - sum(len(each.window) for each in batches)
        unfilled = [each for each in batches if each.fresh]
        is_full = free <= 0 and not any(each.window for each in batches)
        if is_full or monotonic() > self.turn_until:
            for batch in unfilled:
                batch.release_fresh()
        elif free > 0:
            self._fill_places(unfilled, free)

    def _fill_places(self, unfilled: Sequence[BatchProgress], free: int) -> None:
        """Fill free places. Rooms are read only for the batches that could fill them."""
        until = monotonic() + FILL_SECONDS
        rooms: dict[str, int] = {}
        for position, batch in enumerate(unfilled):
            if free <= 0:
                break
            organization_id = batch.batch.organization_id
            if organization_id not in rooms:
                nearest = _enough(unfilled[position:], free)
                rooms |= accounts.process_rooms(
                    {each.batch.organization_id: free for each in nearest},
                    self.channel,
                    self.process.load,
                )
            room = rooms[organization_id]
            if monotonic() > self.turn_until or not (room or batch.window):
                batch.release_fresh()
            elif not (position and monotonic() > until):
                size = len(batch.window)
                share = max(SHARE, free // (len(unfilled) - position))
                batch.fill(min(room, free, share), until)
                free -= len(batch.window) - size

    def _admit(self, batches: Sequence[BatchProgress]) -> None:
        """Take out of the window what the accounts' health makes wait."""
        accounts.admit(_window(batches), self.failing, self.process.load, clock.now())
        for progress in batches:
            progress.set_decided_apart()

    def _commit(self, batches: Sequence[BatchProgress]) -> list[str]:
        """Record the window before and the attempts of the next; return the attempts that the gates
        stopped.
        """
        decided = [delivery for each in batches for delivery in each.decided]
        organization_ids = [each.batch.organization_id for each in batches if each.window]
        window = _window(batches)
        outcomes = record.outcomes(self.answered)
        with _transaction(decided, window) as batch:
            gate_lock.take_shared(organization_ids, batch)
            # before the gates, so that frequency caps count it
            begun = record.begin_attempts(window)
            changed = record.record(decided, outcomes, batch, begun)
            check = _begin_check(window, batch)
        answers, self.answered = self.answered, []
        record.log_fenced(decided, changed)
        record.count_sent(decided)
        if receipts := record.receipts(answers):
            self.follow_up.on_receipts(receipts)
        for progress in batches:
            progress.decided = []
        return _apply_check(window, check) if check else []

    def _remove_attempts(self, batches: Sequence[BatchProgress], stopped: Sequence[str]) -> None:
        """Remove the attempts that the gates stopped, and record their deliveries' statuses."""
        if not stopped:
            return
        for progress in batches:
            progress.set_decided_apart()
        decided = [delivery for each in batches for delivery in each.decided]
        with prepared_statements.transaction() as batch:
            changed = record.record(decided, AttemptOutcomes(not_made=stopped), batch)
        record.log_fenced(decided, changed)
        for progress in batches:
            progress.decided = []

    def _hand_over(self, batches: Sequence[BatchProgress]) -> list[OutgoingDelivery]:
        """Hand the window over; return what was answered in time, which alone stays in it."""
        window = _window(batches)
        if not window:
            return []
        deliveries = Window(window, self.until, self.follow_up, self.process).send(self.transport)
        ids = {id(delivery) for delivery in deliveries}
        for batch in batches:
            batch.window = [delivery for delivery in batch.window if id(delivery) in ids]
        return deliveries

    def _apply_outcomes(self, deliveries: Sequence[OutgoingDelivery]) -> None:
        """Report the outcomes to the circuits, and decide what follows from them."""
        self.answered = [Answered(each, []) for each in deliveries]
        record.count_outcomes(attempt for delivery in deliveries for attempt in delivery.attempts)
        self.failing |= circuit_history.report(
            (attempt.account.id, attempt.outcome)
            for delivery in deliveries
            for attempt in delivery.attempts
            if attempt.outcome is not None
        ).last
        now, may_fail_over = clock.now(), monotonic() < self.until
        for position, delivery in enumerate(deliveries):
            delivery.apply_outcomes(now=now, may_fail_over=may_fail_over)
            self.answered[position] = Answered(delivery, delivery.take_attempts())


def _enough(unfilled: Sequence[BatchProgress], places: int) -> list[BatchProgress]:
    """Return the first batches that could fill the places, each with its least share."""
    enough: list[BatchProgress] = []
    for batch in unfilled:
        if places <= 0:
            break
        enough.append(batch)
        places -= min(SHARE, len(batch.fresh))
    return enough


def _window(batches: Sequence[BatchProgress]) -> list[OutgoingDelivery]:
    return [delivery for each in batches for delivery in each.window]


def _transaction(
    decided: Sequence[OutgoingDelivery], window: Sequence[OutgoingDelivery]
) -> AbstractContextManager[prepared_statements.Batch]:
    """Open the transaction: as one pipeline, unless an answer is needed before its end."""
    needs_answers = any(each.suppress_as for each in decided) or any(
        each.rules.cap for each in window
    )
    return prepared_statements.transaction() if needs_answers else prepared_statements.pipeline()


def _begin_check(
    window: Sequence[OutgoingDelivery], batch: prepared_statements.Batch
) -> gates.PendingCheck | None:
    """Begin the last check of pauses, suppressions and consent, in the attempts' transaction."""
    candidates = [
        gates.Candidate(
            delivery.claimed.organization_id,
            delivery.claimed.contact_id,
            delivery.claimed.channel,
            delivery.address,
            delivery.rules,
            delivery.claimed.id,
            delivery.claimed.test,
        )
        for delivery in window
    ]
    return gates.begin_check(candidates, batch) if candidates else None


def _apply_check(window: Sequence[OutgoingDelivery], check: gates.PendingCheck) -> list[str]:
    """Stop the deliveries that may not be sent now; return their attempts, which are not made."""
    not_made: list[str] = []
    now = clock.now()
    pauses, results = check.read()
    for delivery, (refusal, entry) in zip(window, results, strict=True):
        claimed = delivery.claimed
        paused = pauses.get(claimed.organization_id)
        if paused and paused.cover(claimed.channel, claimed.category, claimed.template):
            not_made += delivery.cancel_attempts()
            delivery.wait(WaitReason.PAUSED, now + PAUSE_RECHECK)
        elif refusal:
            not_made += delivery.cancel_attempts()
            text = gates.REFUSAL_TEXTS[refusal]
            delivery.end_channel(Status.BLOCKED, refusal, text, now=now, entry=entry)
    return not_made
