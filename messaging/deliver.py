"""Sending what was claimed, window by window: gates again, hand over, record what came of it.

No transaction is open across the network. One is committed before each window leaves: it holds the
outcomes of the window before, the attempts that are about to be made, and the last look at the
gates. A worker that is killed leaves at most one window in doubt, and its attempts show which; what
the gates stop, which is rare, is taken back before the others leave.

A window does not wait for its slowest send: what is not answered in time is left behind (see
`in_flight`), and the next window is smaller by that.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from time import monotonic

import structlog

from messaging import (
    circuits,
    concurrency,
    gate_lock,
    gates,
    left_behind,
    policy,
    preparing,
    rates,
    recording,
    routing,
)
from messaging.claiming import CLAIM_SECONDS, Claim, Claimed
from messaging.in_flight import Window
from messaging.left_behind import Then
from messaging.outcome import Receipt, Sending, Shot
from messaging.states import Status
from rme.core import clock, prepared
from rme.core.outcomes import Outcome
from rme.core.transport import Transport

log = structlog.get_logger(__name__)

PAUSE_RECHECK = timedelta(seconds=60)
RENDER_SECONDS = CLAIM_SECONDS / 2
"""What is rendered by then leaves, though the window be not full."""
TURN_SECONDS = 1.5 * CLAIM_SECONDS
"""What has not been tried by then goes back: other organizations have their turn."""
Told = Callable[[Sequence[Receipt]], object]
Answered = Sequence[tuple[Sending, list[Shot]]]


def deliver(
    claim: Claim, transport: Transport, told: Told, freed: Callable[[], object] = tuple
) -> int:
    """Send what was claimed; return how many deliveries had their turn, and did not go back.

    `told` is given the receipts that came with answers (the simulator's) once these are recorded.
    `freed` is called when what was left behind has ended, and there is room for more.
    """
    then = Then(told, freed)
    rules = policy.of(claim.organization_id)
    until = claim.until
    turn_until = min(until, monotonic() + TURN_SECONDS)
    preparation = preparing.Preparation(claim, rules)
    fresh = deque(claim.deliveries)
    settled = _unreadable(claim)
    last: set[int] = set()  # the accounts that were found to stand badly
    before: list[Sending] = []  # the window before, as far as it was answered in time
    given_back = 0
    while before or fresh or settled:
        settled += _decided(before)
        window = _open(before)  # which fail over
        room = _room(claim, len(window)) if fresh else 0
        if monotonic() > turn_until or not (room or window):
            given_back += len(fresh)
            settled += _put_back(fresh, rules)
        settled += _fill(window, fresh, preparation, len(window) + room)
        routing.lower((turns for one in window for turns in one.turns.values()), last)
        concurrency.hold(window, clock.now())
        rates.hold(_open(window), rules.accounts, clock.now())
        settled += _decided(window)
        answered: Answered = [(sending, sending.heard()) for sending in before]
        window = _recorded(claim, answered, settled, _open(window), then)
        before = _send(claim, window, until, transport, then)
        last |= circuits.report(_answers(before)).last
        now, may_go_on = clock.now(), monotonic() < until
        for sending in before:
            sending.judge(now=now, may_go_on=may_go_on)
        settled = []
    return len(claim.deliveries) - given_back


def _unreadable(claim: Claim) -> list[Sending]:
    """Return the deliveries whose rows cannot be read, as failed."""
    rules = policy.of(claim.organization_id)
    failed = [Sending(claimed, rules.rules(claimed.category)) for claimed in claim.unreadable]
    for sending in failed:
        sending.decide(Status.FAILED, "TEMPLATE_ERROR", "what was to be sent cannot be read")
    return failed


def _room(claim: Claim, taken: int) -> int:
    """Return how many deliveries may be added to a window that holds some."""
    free = concurrency.window() - taken
    return concurrency.room(claim.organization_id, claim.channel, free) if free > 0 else 0


def _fill(
    window: list[Sending], fresh: deque[Claimed], preparation: preparing.Preparation, most: int
) -> list[Sending]:
    """Add prepared deliveries to the window until it is full; return those decided meanwhile."""
    decided: list[Sending] = []
    until = monotonic() + RENDER_SECONDS
    while fresh and len(window) < most:
        taken = preparation.take(fresh, most - len(window), until)
        decided += _decided(taken)
        window += _open(taken)
        if monotonic() > until:
            break
    return decided


def _recorded(
    claim: Claim, answered: Answered, settled: list[Sending], window: list[Sending], then: Then
) -> list[Sending]:
    """Record what became of the window before, and the attempts of the next; return what leaves.

    What cannot be recorded stays in doubt, and nothing leaves in its place until it is.
    """
    try:
        outcomes = recording.outcomes(claim, answered)
        with _at_once(settled, window):
            if window:
                gate_lock.share(claim.organization_id)
            # before the gates, so that frequency caps count it
            attempts = {"attempts": recording.attempts(claim, window)}
            recorded = recording.record(claim, settled, {**outcomes, **attempts})
            look = _look_at_gates(claim, window)
    except BaseException:
        left_behind.store_again(claim, answered, then)
        raise
    recording.log_fenced(claim, settled, recorded)
    receipts = [receipt for sending, shots in answered for receipt in sending.receipts(shots)]
    if receipts:
        then.told(receipts)
    if not_made := _pass_gates(claim, window, look):
        _take_back(claim, window, not_made)
        window = _open(window)
    return window


def _send(
    claim: Claim, window: Sequence[Sending], until: float, transport: Transport, then: Then
) -> list[Sending]:
    """Hand the window over, and return what was answered in time."""
    return Window(claim, window, until, then).send(transport) if window else []


def _at_once(settled: Sequence[Sending], window: Sequence[Sending]) -> AbstractContextManager[None]:
    """Open the transaction: all of it in one go, unless more is asked in it than mostly is."""
    asks = any(one.bounced_hard for one in settled) or any(one.rules.cap for one in window)
    return prepared.transaction() if asks else prepared.together()


def _answers(hand: Iterable[Sending]) -> list[tuple[int | None, Outcome]]:
    """Return the answers that have just come, by account."""
    return [
        (shot.account.id, shot.outcome)
        for sending in hand
        for shot in sending.shots
        if shot.outcome is not None
    ]


def _put_back(fresh: deque[Claimed], rules: policy.Policy) -> list[Sending]:
    """Give up the hold on what has not been tried."""
    given_back = [Sending(claimed, rules.rules(claimed.category)) for claimed in fresh]
    fresh.clear()
    for sending in given_back:
        sending.put_back(clock.now())
    return given_back


def _open(hand: Iterable[Sending]) -> list[Sending]:
    return [sending for sending in hand if sending.status is None]


def _decided(hand: Iterable[Sending]) -> list[Sending]:
    return [sending for sending in hand if sending.status is not None]


def _look_at_gates(claim: Claim, hand: Sequence[Sending]) -> gates.Look | None:
    """Look at pauses, suppressions and consent a last time, in the transaction of the attempts."""
    if not hand:
        return None
    return gates.look_at_send(
        claim.organization_id,
        [
            gates.Candidate(
                sending.claimed.contact_id,
                claim.channel,
                sending.address,
                sending.rules,
                sending.claimed.id,
            )
            for sending in hand
        ],
    )


def _pass_gates(claim: Claim, hand: Sequence[Sending], look: gates.Look | None) -> list[str]:
    """Decide what is not to be sent now, and return the attempts that are not made after all."""
    if look is None:
        return []
    not_made: list[str] = []
    now = clock.now()
    paused, verdicts = look()
    for sending, (refusal, entry) in zip(hand, verdicts, strict=True):
        claimed = sending.claimed
        if paused.rows and paused.cover(claim.channel, claimed.category, claimed.template):
            not_made += sending.take_back()
            sending.wait("PAUSED", now + PAUSE_RECHECK)
        elif refusal:
            not_made += sending.take_back()
            sending.give_up(Status.BLOCKED, refusal.code, refusal.default, now=now, entry=entry)
    return not_made


def _take_back(claim: Claim, hand: Sequence[Sending], not_made: list[str]) -> None:
    """Record what the gates stopped, and that attempts were not made."""
    stopped = _decided(hand)
    with prepared.transaction():
        steps = {"not_made": recording.removing(not_made)}
        recorded = recording.record(claim, stopped, steps)
    recording.log_fenced(claim, stopped, recorded)
