"""How many sends may be under way: of this process, and of each account by its adaptive limit.

A process has at most a window of sends in doubt. What an account left unanswered counts until its
outcome is stored, so the next window is smaller by as much. An account that leaves sends unanswered
has its limit cut to what it answered in time, and gets it back step by step, window by window
(additive increase, multiplicative decrease, as TCP's congestion window in RFC 5681). An account
whose circuit is not closed gets some probes a second, and no window.

All this is of one process; `circuits` and `rates` are shared by all.
"""

import os
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic

import structlog
from django.conf import settings

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.availability import (
    Availability,
    CircuitState,
    Key,
    UnavailableReason,
    key_of,
)
from messaging.delivery.claims import WINDOW
from messaging.policy.organization_policy import Account
from rme.core.outcomes import Accepted, Outcome, Rejected

log = structlog.get_logger(__name__)

STREAMS = 40
"""At most so many sends of a process are under way to one host; others need connections too."""
RESERVED = 10
"""So much of the window is kept for accounts that are not slow."""
SLOW_LIMIT = 20
"""The limit of an account that answers well, but late, grows back to this."""
STEP = 5
"""By so much a limit grows with a window that was answered in time."""
THREADS = 16
"""At most so many parts of windows are under way, each in a sending thread."""
RESERVED_THREADS = 4
PARTS = 3
"""At most so many of them are of one slow account."""
PROBE_SECONDS = 1.0
REST_SECONDS = 5.0
"""How long an account is tried last that failed by leaving a send unanswered."""
FULL_WAIT = 1.0
"""Seconds until an account that takes no more is looked at again."""


@dataclass(slots=True)
class Load:
    """What an account has under way that it left unanswered, and its adaptive limit."""

    limit: int = WINDOW
    in_flight: int = 0
    parts: int = 0
    probed_at: float = float("-inf")

    @property
    def slow(self) -> bool:
        return self.limit < WINDOW


class _ProcessLoad:
    """The loads of this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start empty: after a fork nothing is under way in the child."""
        self.lock = threading.Lock()
        self.in_doubt = 0
        """Deliveries that were left unanswered, or whose outcomes could not be stored yet."""
        self.parts = 0
        self.loads: dict[Key, Load] = {}


_process = _ProcessLoad()


os.register_at_fork(after_in_child=_process.reset)


def window() -> int:
    """Return how many sends the next window may hold: a window less what is in doubt."""
    return 0 if _process.parts >= THREADS else max(0, WINDOW - _process.in_doubt)


def in_doubt() -> int:
    """Return how many deliveries of this process are in doubt, beside the present window's."""
    return _process.in_doubt


def availability(accounts: Iterable[Account]) -> dict[Key, Availability]:
    """Return how many sends each account takes now; at most one call to Redis."""
    chosen = {key_of(account): account for account in accounts}
    broken = circuits.broken([a.id for a in chosen.values() if a.id is not None])
    return {key: _availability(key, broken) for key in chosen}


_UNLIMITED = Availability()


def _availability(key: Key, broken: Collection[Key]) -> Availability:
    load = _process.loads.get(key)
    if key in broken:
        probed_at = load.probed_at if load else float("-inf")
        in_flight = load.in_flight if load else 0
        due = monotonic() >= probed_at + PROBE_SECONDS
        count = max(0, circuits.PROBES - in_flight) if due else 0
        return Availability(count, FULL_WAIT, UnavailableReason.CIRCUIT, CircuitState.OPEN)
    if load is None or not load.slow:
        return _UNLIMITED
    if load.parts >= PARTS or _process.parts >= THREADS - RESERVED_THREADS:
        return Availability(0, FULL_WAIT, UnavailableReason.SLOW)
    count = max(0, min(load.limit - load.in_flight, window() - RESERVED))
    return Availability(count, FULL_WAIT, UnavailableReason.SLOW)


def note_sends(counts: Mapping[Key, int]) -> None:
    """Note that sends leave by accounts whose count is limited: a broken one was probed now."""
    with _process.lock:
        for key, count in counts.items():
            if count:
                _process.loads.setdefault(key, Load()).probed_at = monotonic()


def is_slow(account: Account) -> bool:
    """Return whether an account has lately left sends unanswered."""
    load = _process.loads.get(key_of(account))
    return load is not None and load.slow


def answer_seconds(account: Account) -> float:
    """Return how long a part of a window waits for answers, in seconds: less for a slow account."""
    load = _process.loads.get(key_of(account))
    slow = load is not None and load.limit <= SLOW_LIMIT
    seconds: float = settings.PATIENCE_SECONDS
    return seconds / 2 if slow else seconds


# --- the answers of windows -----------------------------------------------------------------------


def answered_in_time(account: Account, count: int) -> None:
    """Raise an account's limit: all of a part was answered in time."""
    load = _process.loads.get(key_of(account))
    if load is None or not load.slow or 2 * count < load.limit:
        return
    with _process.lock:
        load.limit = limit = min(WINDOW, load.limit + STEP)
    if limit == WINDOW:
        log.info("account.recovered", account_id=account.id)


def left_unanswered(account: Account, answered: int, left: int) -> None:
    """Cut an account's limit: of a part, so many sends were answered and so many are under way."""
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
    """Count a part less: it had left sends unanswered, and its sending thread is free now."""
    with _process.lock:
        _process.loads[key_of(account)].parts -= 1
        _process.parts -= 1


def answered_late(account: Account, outcome: Outcome) -> None:
    """Count the outcome of a send that had been left unanswered."""
    with _process.lock:
        load = _process.loads[key_of(account)]
        load.in_flight -= 1
        if isinstance(outcome, Accepted | Rejected):
            if load.limit < SLOW_LIMIT:
                load.limit += 1
        else:
            load.limit = max(1, load.limit // 2)


def add_in_doubt(count: int) -> None:
    """Count deliveries that are in doubt now, or with a negative count that no longer are."""
    with _process.lock:
        _process.in_doubt += count
