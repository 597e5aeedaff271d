"""Sending what was claimed, window by window: gates again, hand over, record what came of it.

No transaction is open across the network. One is committed before each window leaves: it holds the
outcomes of the window before, the attempts that are about to be made, and the last look at the
gates. A worker that is killed leaves at most one window in doubt, and its attempts show which; what
the gates stop, which is rare, is taken back before the others leave.

A window does not wait for its slowest send: what is not answered in time is left behind (see
`in_flight`), and the next window is smaller by that. It holds deliveries of several organizations
where each has only a few, so that many small ones cost as little as one large one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cached_property
from time import monotonic

import structlog

from messaging.consent import gate_lock, gates
from messaging.delivery import late_outcomes, prefetch, prepare, record, render_limit
from messaging.delivery.accounts import circuits, concurrency, rates, routing
from messaging.delivery.claims import CLAIM_SECONDS, Claim
from messaging.delivery.in_flight import Window
from messaging.delivery.late_outcomes import Then
from messaging.delivery.next_steps import Sending, Shot
from messaging.feedback.receipts import Receipt
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from rme.core.db import clock, prepared_statements
from rme.core.outcomes import Outcome
from rme.crm.connectors.records import ContactRecord
from rme.transport import Transport

log = structlog.get_logger(__name__)

PAUSE_RECHECK = timedelta(seconds=60)
RENDER_SECONDS = CLAIM_SECONDS / 2
"""What is rendered by then leaves, though the window be not full."""
TURN_SECONDS = 1.5 * CLAIM_SECONDS
"""What has not been tried by then goes back: other organizations have their turn."""
SHARE = 10
"""Of a window, so much is for each organization at least: each has connections of its own."""
Told = Callable[[Sequence[Receipt]], object]
Answered = Sequence[tuple[Sending, list[Shot]]]


class Turn:
    """What one organization has of the windows: what was claimed of it, and where that stands."""

    def __init__(self, claim: Claim, contacts: Mapping[str, ContactRecord] | None) -> None:
        self.claim, self.contacts = claim, contacts
        self.rules = organization_policy.of(claim.organization_id)
        self.fresh = deque(claim.deliveries)
        self.given_back = 0
        self.window: list[Sending] = []
        """What leaves next; then, what of it was answered in time."""
        self.settled = self._unreadable()
        """What is decided, and not recorded yet."""

    @cached_property
    def preparation(self) -> prepare.Preparation:
        """Read what preparing needs, once, when the first delivery is about to leave."""
        return prepare.Preparation(self.claim, self.rules, self.contacts)

    @property
    def is_open(self) -> bool:
        """Return whether anything is still to be sent or recorded."""
        return bool(self.window or self.fresh or self.settled)

    def settle(self) -> None:
        """Set apart what is decided. What stays in the window fails over."""
        self.settled += [each for each in self.window if each.decided]
        self.window = [each for each in self.window if not each.decided]

    def fill(self, count: int, until: float) -> None:
        """Add so many prepared deliveries, none after a time (monotonic) but the first."""
        most = len(self.window) + count
        while self.fresh and len(self.window) < most:
            self.window += self.preparation.take(self.fresh, most - len(self.window), until)
            self.settle()
            if monotonic() > until:
                break

    def give_back(self) -> None:
        """Give up the hold on what has not been tried."""
        self.given_back += len(self.fresh)
        for claimed in self.fresh:
            sending = Sending(claimed, self.rules.rules(claimed.category))
            sending.put_back(clock.now())
            self.settled.append(sending)
        self.fresh.clear()

    def _unreadable(self) -> list[Sending]:
        """Return the deliveries whose rows cannot be read, as failed."""
        failed = [Sending(each, self.rules.rules(each.category)) for each in self.claim.unreadable]
        for sending in failed:
            sending.decide(Status.FAILED, "TEMPLATE_ERROR", "what was to be sent cannot be read")
        return failed


def deliver(
    claims: Sequence[Claim], transport: Transport, told: Told, freed: Callable[[], object] = tuple
) -> dict[str, int]:
    """Send what was claimed on a channel, of all organizations together.

    Return, by organization, how many deliveries had their turn and did not go back. `told` is given
    the receipts that came with answers (the simulator's) once these are recorded. `freed` is called
    when what was left behind has ended, and there is room for more.
    """
    then = Then(told, freed)
    contacts = prefetch.read_ahead(claims)
    turns = [Turn(claim, contacts.get(claim.organization_id)) for claim in claims]
    until = min((claim.until for claim in claims), default=0.0)
    turn_until = min(until, monotonic() + TURN_SECONDS)
    last: set[int] = set()  # the accounts that were found to stand badly
    while going := [turn for turn in turns if turn.is_open]:
        before = [sending for turn in going for sending in turn.window]
        with render_limit.timers():
            _fill(going, turn_until)
        _hold(going, last)
        _record(going, [(sending, sending.heard()) for sending in before], then)
        window = _send(going, until, transport, then)
        last |= circuits.report(_answers(window)).last
        now, may_go_on = clock.now(), monotonic() < until
        for sending in window:
            sending.judge(now=now, may_go_on=may_go_on)
    return {
        turn.claim.organization_id: len(turn.claim.deliveries) - turn.given_back for turn in turns
    }


def _fill(turns: Sequence[Turn], turn_until: float) -> None:
    """Fill the next window: with what fails over, and with a share for each organization."""
    for turn in turns:
        turn.settle()
    free = concurrency.window() - sum(len(turn.window) for turn in turns)
    fresh = [turn for turn in turns if turn.fresh]
    rooms = concurrency.rooms(
        {turn.claim.organization_id: max(free, 0) for turn in fresh}, turns[0].claim.channel
    )
    until = monotonic() + RENDER_SECONDS
    nothing_moves = free <= 0 and not any(turn.window for turn in turns)
    for place, turn in enumerate(fresh):
        room = rooms[turn.claim.organization_id]
        if monotonic() > turn_until or nothing_moves or (free > 0 and not (room or turn.window)):
            turn.give_back()
        elif free > 0 and not (place and monotonic() > until):
            held = len(turn.window)
            turn.fill(min(room, free, max(SHARE, free // (len(fresh) - place))), until)
            free -= len(turn.window) - held


def _hold(turns: Sequence[Turn], last: set[int]) -> None:
    """Let others go before accounts that stand badly; hold what is beyond an account's limits."""
    window = [sending for turn in turns for sending in turn.window]
    accounts = [account for turn in turns for account in turn.rules.accounts]
    routing.lower((accounts for one in window for accounts in one.turns.values()), last)
    concurrency.hold(window, clock.now())
    rates.hold([each for each in window if not each.decided], accounts, clock.now())
    for turn in turns:
        turn.settle()


def _record(turns: Sequence[Turn], answered: Answered, then: Then) -> None:
    """Record what became of the window before, and the attempts of the next.

    What cannot be recorded stays in doubt, and nothing leaves in its place until it is.
    """
    settled = [sending for turn in turns for sending in turn.settled]
    leaving = [turn for turn in turns if turn.window]
    window = [sending for turn in leaving for sending in turn.window]
    try:
        outcomes = record.outcomes(answered)
        with _at_once(settled, window):
            gate_lock.take_shared(turn.claim.organization_id for turn in leaving)
            # before the gates, so that frequency caps count it
            attempts = {"attempts": record.attempts(window)}
            recorded = record.record(settled, {**outcomes, **attempts})
            check = _begin_check(window)
    except BaseException:
        late_outcomes.store_again(answered, then)
        raise
    record.log_fenced(settled, recorded)
    receipts = [receipt for sending, shots in answered for receipt in sending.receipts(shots)]
    if receipts:
        then.told(receipts)
    for turn in turns:
        turn.settled = []
    if check and (not_made := _pass_gates(window, check)):
        _take_back(leaving, not_made)


def _begin_check(window: Sequence[Sending]) -> gates.PendingCheck | None:
    """Begin the last check of pauses, suppressions and consent, in the attempts' transaction."""
    candidates = [
        gates.Candidate(
            sending.claimed.organization_id,
            sending.claimed.contact_id,
            sending.claimed.channel,
            sending.address,
            sending.rules,
            sending.claimed.id,
        )
        for sending in window
    ]
    return gates.begin_check(candidates) if candidates else None


def _pass_gates(window: Sequence[Sending], check: gates.PendingCheck) -> list[str]:
    """Decide what is not to be sent now; return the attempts that are not made after all."""
    not_made: list[str] = []
    now = clock.now()
    pauses, results = check.read()
    for sending, (refusal, entry) in zip(window, results, strict=True):
        claimed = sending.claimed
        paused = pauses.get(claimed.organization_id)
        if paused and paused.cover(claimed.channel, claimed.category, claimed.template):
            not_made += sending.take_back()
            sending.wait("PAUSED", now + PAUSE_RECHECK)
        elif refusal:
            not_made += sending.take_back()
            sending.give_up(Status.BLOCKED, refusal.code, refusal.default, now=now, entry=entry)
    return not_made


def _take_back(turns: Sequence[Turn], not_made: list[str]) -> None:
    """Record what the gates stopped, and that attempts were not made."""
    for turn in turns:
        turn.settle()
    stopped = [sending for turn in turns for sending in turn.settled]
    with prepared_statements.transaction():
        recorded = record.record(stopped, {"not_made": record.removing(not_made)})
    record.log_fenced(stopped, recorded)
    for turn in turns:
        turn.settled = []


def _send(
    turns: Sequence[Turn], until: float, transport: Transport, then: Then
) -> Sequence[Sending]:
    """Hand the window over, and return what was answered in time; the turns keep that alone."""
    window = [sending for turn in turns for sending in turn.window]
    if not window:
        return []
    answered = Window(window, until, then).send(transport)
    chosen = {id(sending) for sending in answered}
    for turn in turns:
        turn.window = [sending for sending in turn.window if id(sending) in chosen]
    return answered


def _at_once(settled: Sequence[Sending], window: Sequence[Sending]) -> AbstractContextManager[None]:
    """Open the transaction: all of it in one go, unless more is asked in it than mostly is."""
    asks = any(one.bounced_hard for one in settled) or any(one.rules.cap for one in window)
    return prepared_statements.transaction() if asks else prepared_statements.pipeline()


def _answers(hand: Iterable[Sending]) -> list[tuple[int | None, Outcome]]:
    """Return the answers that have just come, by account."""
    return [
        (shot.account.id, shot.outcome)
        for sending in hand
        for shot in sending.shots
        if shot.outcome is not None
    ]
