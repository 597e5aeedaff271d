"""Sending what was claimed, window by window: gates again, hand over, record what came of it.

No transaction is open across the network. One is committed before each window leaves: it holds the
outcomes of the window before, the attempts that are about to be made, and the last look at the
gates. A worker that is killed leaves at most one window in doubt, and its attempts show which; what
the gates stop, which is rare, is taken back before the others leave.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from time import monotonic
from uuid import UUID

import structlog
from django.conf import settings

from messaging import (
    circuits,
    gate_lock,
    gates,
    policy,
    preparing,
    rates,
    references,
    routing,
    suppression,
)
from messaging.claiming import WINDOW, Claim, Claimed
from messaging.events import of_moved
from messaging.models import Attempt, Delivery, ProviderReference
from messaging.outcome import Receipt, Sending, Shot
from messaging.providers.base import Dispatch
from messaging.states import TRANSITIONS, Status
from push import feedback
from rme.core import clock, ids, prepared, sql
from rme.core.outcomes import Accepted, Outcome, Retryable
from rme.core.states import advancing
from rme.core.transport import Transport, at_once

log = structlog.get_logger(__name__)

PAUSE_RECHECK = timedelta(seconds=60)
NO_TIME = Retryable("no time left in this turn")
"""Nobody was asked: this speaks against no account."""


def deliver(
    claim: Claim, transport: Transport, told: Callable[[Sequence[Receipt]], object]
) -> None:
    """Send what was claimed. `told` is given the receipts that came with a window's answers (the
    simulator's) once these are recorded.
    """
    rules = policy.of(claim.organization_id)
    until = monotonic() + settings.LEASE_SECONDS / 2
    preparation = preparing.Preparation(claim, rules)
    fresh = deque(claim.deliveries)
    last: set[int] = set()  # the accounts that were found to stand badly
    window: list[Sending] = []
    receipts: list[Receipt] = []  # of the window before
    while window or fresh:
        settled, following = _decided(window), _open(window)  # which fail over
        if monotonic() > until:  # half of the lease: what is fresh is for whoever comes next
            settled += _put_back(fresh, rules)
        while fresh and len(following) < WINDOW:
            count = min(len(fresh), WINDOW - len(following))
            taken = preparation.take([fresh.popleft() for _ in range(count)])
            settled += _decided(taken)
            following += _open(taken)
        routing.lower((turns for one in following for turns in one.turns.values()), last)
        rates.hold(following, rules.accounts, clock.now())
        settled += _decided(following)
        heard, window = _outcomes(claim, window), _open(following)
        with _at_once(settled, window):
            if window:
                gate_lock.share(claim.organization_id)
            # before the gates, so that frequency caps count it
            recorded = _record(claim, settled, {**heard, "attempts": _attempts(claim, window)})
            look = _look_at_gates(claim, window)
        _tell_of_fenced(claim, settled, recorded)
        if receipts:
            told(receipts)
        if never := _pass_gates(claim, window, look):
            _take_back(claim, window, never)
            window = _open(window)
        receipts = _send(window, transport, until)
        last |= circuits.report(_answered(window)).last
        now, may_go_on = clock.now(), monotonic() < until
        for sending in window:
            sending.judge(now=now, may_go_on=may_go_on)


def _at_once(settled: Sequence[Sending], window: Sequence[Sending]) -> AbstractContextManager[None]:
    """Open the transaction: all of it in one go, unless more is asked in it than mostly is."""
    asks = any(one.bounced_hard for one in settled) or any(one.rules.cap for one in window)
    return prepared.transaction() if asks else prepared.together()


def _answered(hand: Iterable[Sending]) -> list[tuple[int | None, Outcome]]:
    """Give the answers that have just come, by account."""
    return [
        (shot.account.id, shot.outcome)
        for sending in hand
        for shot in sending.shots
        if shot.outcome is not None and shot.outcome is not NO_TIME
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
    """Decide what is not to be sent now, and give the attempts that are not made after all."""
    if look is None:
        return []
    never: list[str] = []
    now = clock.now()
    paused, verdicts = look()
    for sending, (refusal, entry) in zip(hand, verdicts, strict=True):
        claimed = sending.claimed
        if paused.rows and paused.cover(claim.channel, claimed.category, claimed.template):
            never += sending.take_back()
            sending.wait("PAUSED", now + PAUSE_RECHECK)
        elif refusal:
            never += sending.take_back()
            sending.give_up(Status.BLOCKED, refusal.code, refusal.default, now=now, entry=entry)
    return never


def _take_back(claim: Claim, hand: Sequence[Sending], never: list[str]) -> None:
    """Record what the gates stopped, and that attempts were not made."""
    text = f"DELETE FROM {Attempt._meta.db_table} WHERE id = ANY(%s::uuid[])"
    stopped = _decided(hand)
    with prepared.transaction():
        recorded = _record(claim, stopped, {"never": sql.Part(text, [sql.array(never)])})
    _tell_of_fenced(claim, stopped, recorded)


def _attempts(claim: Claim, hand: Sequence[Sending]) -> sql.Part | None:
    """Write ahead, for each delivery, the attempts with the account that is next."""
    now = clock.now()
    rows = []
    for sending in hand:
        for device_id, content, account in sending.next_turns():
            shot = Shot(ids.new_text_id(), account, device_id, content, now)
            sending.fire(shot)
            rows.append(
                {
                    "id": shot.attempt_id,
                    "organization_id": claim.organization_id,
                    "message_id": sending.claimed.message_id,
                    "delivery_id": sending.claimed.id,
                    "fence": sending.claimed.fence,
                    "channel": claim.channel,
                    "provider": account.name,
                    "account_id": account.id,
                    "device_id": device_id,
                    "started_at": now,
                }
            )
    return sql.inserting(Attempt, rows)


def _send(hand: Sequence[Sending], transport: Transport, until: float) -> list[Receipt]:
    """Hand the shots to their providers, all accounts at once, and note the answers."""
    by_account: dict[int, list[Shot]] = defaultdict(list)
    owner: dict[str, Sending] = {}
    for sending in hand:
        for shot in sending.shots:
            by_account[id(shot.account)].append(shot)
            owner[shot.attempt_id] = sending
    receipts = []
    groups = list(by_account.values())
    heard = at_once([partial(_hand_over, shots, until) for shots in groups], transport)
    for shots, (outcomes, took) in zip(groups, heard, strict=True):
        for shot, outcome in zip(shots, outcomes, strict=True):
            shot.outcome, shot.latency_ms = outcome, took
            if isinstance(outcome, Accepted) and outcome.receipts:
                delivery_id = UUID(owner[shot.attempt_id].claimed.id)
                receipts += [Receipt(delivery_id, kind) for kind in outcome.receipts]
    return receipts


def _hand_over(
    shots: Sequence[Shot], until: float, transport: Transport
) -> tuple[list[Outcome], int]:
    """Give the outcomes, and the milliseconds that they took."""
    started = monotonic()
    if started > until:  # another silent account would outlast the lease
        return [NO_TIME] * len(shots), 0
    provider = shots[0].account.provider
    assert provider is not None  # only active accounts are routes
    url = shots[0].account.callback_url
    dispatches = [Dispatch(shot.attempt_id, shot.content, url) for shot in shots]
    outcomes = provider.send(dispatches, transport)
    return outcomes, int((monotonic() - started) * 1000)


def _outcomes(claim: Claim, hand: Sequence[Sending]) -> sql.Steps:
    """Write what each attempt of this round came to, and which tokens are dead."""
    rows, said, own_ids = [], [], []
    for sending in hand:
        for shot in sending.heard():
            account, outcome = shot.account, shot.outcome
            assert outcome is not None  # it has been heard
            own_ids += references.row(shot.attempt_id, account.id, account.provider, outcome)
            if shot.device_id:
                said.append(feedback.Said(shot.device_id, shot.started_at, outcome))
            if isinstance(outcome, Accepted):
                reason, provider_id = "", outcome.provider_id
            else:
                reason, provider_id = outcome.reason, ""
            rows.append(
                {
                    "id": shot.attempt_id,
                    "outcome": type(outcome).__name__,
                    "reason": reason[:200] or None,
                    "provider_id": provider_id[:255] or None,
                    "latency_ms": shot.latency_ms,
                }
            )
    return {
        "outcomes": sql.updating(Attempt, rows),
        "own_ids": sql.inserting(ProviderReference, own_ids),
        "feedback": feedback.noting(claim.organization_id, said),
    }


def _record(claim: Claim, hand: Sequence[Sending], attempts: sql.Steps) -> prepared.Answer:
    """Write where the deliveries stand now, the events of it, and what is told of attempts.

    All that by one statement; addresses found dead, which are few, by another.
    """
    moved = sql.send(
        {
            **attempts,
            "moved": advancing(Delivery, TRANSITIONS, [sending.row() for sending in hand]),
            **of_moved(_events(claim, hand)),
            "answer": sql.Part("SELECT count(*) FROM moved") if hand else None,
        }
    )
    suppression.suppress(
        [
            suppression.Entry(
                claim.organization_id, claim.channel, s.address, "HARD_BOUNCE", "PROVIDER"
            )
            for s in hand
            if s.address and s.bounced_hard
        ]
    )
    return moved


def _tell_of_fenced(claim: Claim, hand: Sequence[Sending], moved: prepared.Answer) -> None:
    """Tell of deliveries that somebody else had taken over, and moved."""
    if hand and (count := len(hand) - moved.rows()[0][0]):
        log.warning("deliver.fenced", count=count, channel=claim.channel)


def _events(claim: Claim, hand: Sequence[Sending]) -> list[sql.Row]:
    now = clock.now()
    return [
        {
            "id": ids.new_text_id(),
            "organization_id": claim.organization_id,
            "message_id": sending.claimed.message_id,
            "delivery_id": sending.claimed.id,
            "type": event.type,
            "at": now,
            "channel": claim.channel,
            "provider": event.provider,
            "detail": event.detail,
        }
        for sending in hand
        for event in sending.events
    ]
