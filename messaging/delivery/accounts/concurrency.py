"""How many sends may leave now: of a process, and of each account by its adaptive limit.

A process has at most a window of sends in doubt (reliability's promise 3). What an account left
behind counts until its outcome is stored, so the next window is smaller by as much. An account
that leaves sends behind has its limit cut to what it answered in time, and gets it back step by
step, window by window (additive increase, multiplicative decrease, as TCP's congestion window in
RFC 5681). An account whose circuit is not closed is sent some probes a second, and no window.

What may not leave now is not claimed: it stays ACCEPTED, and other organizations have their turn.
All this is of one process; what all processes share of an account's health is in `circuits`.
"""

import os
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

import structlog
from django.conf import settings

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.routing import SIMULATORS
from messaging.delivery.claims import WINDOW
from messaging.delivery.next_steps import NO_ROOM_SECONDS, Sending
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account
from rme.core.channels import Channel
from rme.core.outcomes import Accepted, Outcome, Rejected

log = structlog.get_logger(__name__)

STREAMS = 40
"""At most so many sends of a process are under way to one host: room is left for the others."""
RESERVED = 10
"""Of the window, for accounts that are not slow."""
SLOW_LIMIT = 20
"""What the limit of an account that answers well, but late, grows back to."""
STEP = 5
"""By so much a limit grows with a window that was answered in time."""
THREADS = 16
"""So many parts of windows may be under way at once, each in a sending thread."""
RESERVED_THREADS = 4
PARTS = 3
"""So many of them by one account that is slow."""
PROBE_SECONDS = 1.0
REST_SECONDS = 5.0
"""How long others go before an account that failed by leaving a send behind."""

Key = int | str
"""An account's id; for the simulator that nobody set up, its channel."""


@dataclass(slots=True)
class Load:
    """What an account has under way that was left behind, and its adaptive limit."""

    limit: int = WINDOW
    in_flight: int = 0
    parts: int = 0
    probed_at: float = float("-inf")

    @property
    def slow(self) -> bool:
        return self.limit < WINDOW


class _Process:
    """The loads of this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: on the other side of a fork nothing is under way."""
        self.lock = threading.Lock()
        self.in_doubt = 0
        """Deliveries that were left behind, or whose outcome could not be stored yet."""
        self.parts = 0
        self.loads: dict[Key, Load] = {}


_process = _Process()


os.register_at_fork(after_in_child=_process.forget)


def key_of(account: Account) -> Key:
    """Return what an account's load is kept under."""
    return account.channel if account.id is None else account.id


def window() -> int:
    """Return how many sends the next window may hold: a window less what is in doubt."""
    return 0 if _process.parts >= THREADS else max(0, WINDOW - _process.in_doubt)


def in_doubt() -> int:
    """Return how many deliveries of this process are in doubt, beside the present window's."""
    return _process.in_doubt


def rooms(wanted: Mapping[str, int], channel: str) -> dict[str, int]:
    """Return how many of those wanted of each organization may leave now, by what the accounts may
    take.
    """
    if not window():
        return dict.fromkeys(wanted, 0)
    accounts = {each: _accounts(each, channel) for each in wanted}
    shares = _shares(account for found in accounts.values() for account in found)
    return {
        each: _room([shares[key_of(account)] for account in accounts[each]], count)
        for each, count in wanted.items()
    }


def _accounts(organization_id: str, channel: str) -> list[Account]:
    accounts = [
        a
        for a in organization_policy.of(organization_id).accounts
        if a.channel == channel and a.active
    ]
    # the simulator's; or all wait for an account, and are told so
    return accounts or [SIMULATORS[Channel(channel)]]


def _room(shares: Collection[int | None], wanted: int) -> int:
    return wanted if None in shares else min(wanted, sum(share or 0 for share in shares))


def _shares(accounts: Iterable[Account]) -> dict[Key, int | None]:
    """Return how many sends each account may take now; None for one that nothing holds back."""
    chosen = {key_of(account): account for account in accounts}
    broken = circuits.broken([a.id for a in chosen.values() if a.id is not None])
    return {key: _share(key, broken) for key in chosen}


def _share(key: Key, broken: Collection[Key]) -> int | None:
    load = _process.loads.get(key)
    if key in broken:
        probed_at = load.probed_at if load else float("-inf")
        in_flight = load.in_flight if load else 0
        due = monotonic() >= probed_at + PROBE_SECONDS
        return max(0, circuits.PROBES - in_flight) if due else 0
    if load is None or not load.slow:
        return None
    if load.parts >= PARTS or _process.parts >= THREADS - RESERVED_THREADS:
        return 0
    return max(0, min(load.limit - load.in_flight, window() - RESERVED))


def hold(hand: Sequence[Sending], now: datetime) -> None:
    """Let what goes next count against the accounts' shares.

    Where the first account of a delivery has no room, the next that has goes before it; where none
    has, the delivery waits.
    """
    accounts = {key_of(one): one for each in hand for turn in each.turns.values() for one in turn}
    shares = {key: share for key, share in _shares(accounts.values()).items() if share is not None}
    if not shares:
        return
    left = dict(shares)
    for sending in hand:
        for turn in sending.turns.values():
            turn.sort(key=lambda account: left.get(key_of(account), 1) <= 0)
        wanted = Counter(key_of(account) for account in sending.coming())
        if any(left.get(key, 1) <= 0 for key in wanted):  # all of a person's devices, or none
            _wait(sending, now)
            continue
        for key, count in wanted.items():
            if key in left:
                left[key] -= count
    with _process.lock:
        for key, share in shares.items():
            if left[key] < share:
                _process.loads.setdefault(key, Load()).probed_at = monotonic()


def _wait(sending: Sending, now: datetime) -> None:
    if sending.account is None:
        sending.wait("PROVIDER", now + timedelta(seconds=NO_ROOM_SECONDS))
    else:  # it was tried in this turn, and counts as that
        sending.wait_for_provider(now=now, reason="the other accounts take no more now")


def is_slow(account: Account) -> bool:
    """Return whether an account has lately left sends behind."""
    load = _process.loads.get(key_of(account))
    return load is not None and load.slow


def patience(account: Account) -> float:
    """Return how long a part of a window is waited for, in seconds: for a slow account less."""
    load = _process.loads.get(key_of(account))
    slow = load is not None and load.limit <= SLOW_LIMIT
    seconds: float = settings.PATIENCE_SECONDS
    return seconds / 2 if slow else seconds


# --- what becomes of windows ----------------------------------------------------------------------


def answered_in_time(account: Account, count: int) -> None:
    """Note that all of a part was answered in time: the account's limit grows."""
    load = _process.loads.get(key_of(account))
    if load is None or not load.slow or 2 * count < load.limit:
        return
    with _process.lock:
        load.limit = limit = min(WINDOW, load.limit + STEP)
    if limit == WINDOW:
        log.info("account.recovered", account_id=account.id)


def left_behind(account: Account, answered: int, left: int) -> None:
    """Note that a part was not answered in time: so much of it was, and so much is under way."""
    with _process.lock:
        load = _process.loads.setdefault(key_of(account), Load())
        if not load.slow:
            log.warning("account.slow", account_id=account.id, answered=answered, left=left)
        load.limit = max(1, min(load.limit // 2, answered))
        if left:
            load.in_flight += left
            load.parts += 1
            _process.parts += 1


def part_ended(account: Account) -> None:
    """Note that a part that was left behind has ended: its sending thread is free."""
    with _process.lock:
        _process.loads[key_of(account)].parts -= 1
        _process.parts -= 1


def answered_late(account: Account, outcome: Outcome) -> None:
    """Note the outcome of a send that was left behind."""
    with _process.lock:
        load = _process.loads[key_of(account)]
        load.in_flight -= 1
        if isinstance(outcome, Accepted | Rejected):
            if load.limit < SLOW_LIMIT:
                load.limit += 1
        else:
            load.limit = max(1, load.limit // 2)


def add_doubt(count: int) -> None:
    """Note that deliveries are in doubt, or with a negative count that they no longer are."""
    with _process.lock:
        _process.in_doubt += count
