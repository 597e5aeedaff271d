"""How many sends may be under way: of this process, and of each account by its adaptive limit.

A process has at most a window of sends in doubt. What an account left unanswered counts until its
outcome is stored, so the next window is smaller by as much. An account that leaves sends unanswered
has its limit cut to what it answered in time, and gets it back step by step, part by part (additive
increase, multiplicative decrease, as TCP's congestion window in RFC 5681); at once if it turns out
to have been waited for too briefly (as TCP does after a spurious time-out, RFC 4015). A slow
account is waited for as briefly as one that never answered. An account whose circuit is not closed
gets some probes a second, and no window.

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
"""The most sends of a process that are under way to one host; others need connections too."""
RESERVED = 10
"""The part of the window that is reserved for accounts that are not slow."""
SLOW_LIMIT = 20
"""The limit of an account that answers well, but late, grows back to this."""
STEP = 5
"""A limit grows by this with each part of a window that was answered in time."""
LEAST_WAIT = 1 / 8
"""An account that is slow or has never answered is waited for this share of `PATIENCE_SECONDS`."""
USUAL_WAIT = 1 / 2
"""Any other account is waited for at least this share: to store late answers costs more."""
USUAL_TIMES = 4
"""An account is waited for this many times its usual time."""
THREADS = 16
"""The most parts of windows that are under way, each in a sending thread."""
RESERVED_THREADS = 4
PARTS = 3
"""The most of them that are of one slow account."""
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
    usual: float = 0.0
    """Seconds in which a part of a window is answered; rises at once and falls slowly."""
    cut_at: float = float("-inf")
    """When the limit was last cut (monotonic)."""
    is_logged: bool = False
    """Whether the log has it as slow."""

    @property
    def slow(self) -> bool:
        return self.limit < WINDOW


@dataclass(slots=True)
class LeftSends:
    """Sends of one account that a part of a window left unanswered."""

    account: Account
    limit: int
    """The account's limit before."""
    count: int
    """How many sends of the account the part had."""
    under_way: int


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
    """Return how many deliveries of this process are in doubt, apart from the current window's."""
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
    _log_slow(key, load)
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
    """Return how long a part of a window may wait for an account's answers, in seconds."""
    longest: float = settings.PATIENCE_SECONDS
    load = _process.loads.get(key_of(account))
    if load is None or load.slow:
        return longest * LEAST_WAIT
    return min(longest, max(longest * USUAL_WAIT, USUAL_TIMES * load.usual))


# --- the answers of windows -----------------------------------------------------------------------


def answered_in_time(account: Account, count: int, seconds: float) -> None:
    """Note how long an account took for all sends of a part, and raise its limit if it was cut."""
    load = _process.loads.setdefault(key_of(account), Load())
    load.usual = max(seconds, load.usual + (seconds - load.usual) / 8)
    if load.slow and 2 * count >= load.limit:
        with _process.lock:
            _set_limit(account, load, load.limit + STEP)


def cut_limit(account: Account, answered: int) -> None:
    """Cut an account's limit to half, or to what it answered of a part in time if that is less."""
    with _process.lock:
        load = _process.loads.setdefault(key_of(account), Load())
        load.limit = max(1, min(load.limit // 2, answered))
        load.cut_at = monotonic()


def left_unanswered(account: Account, count: int, under_way: int) -> LeftSends:
    """Count the sends of a part that stay under way, of `count` in all."""
    with _process.lock:
        load = _process.loads.setdefault(key_of(account), Load())
        load.in_flight += under_way
        load.parts += 1
        _process.parts += 1
        return LeftSends(account, load.limit, count, under_way)


def answered_late(left: LeftSends, outcome: Outcome, seconds: float) -> None:
    """Count the outcome of a send that had been left unanswered, `seconds` after it left.

    The account has the limit again that it had if all came within `PATIENCE_SECONDS`.
    """
    in_time = seconds <= settings.PATIENCE_SECONDS
    with _process.lock:
        load = _process.loads[key_of(left.account)]
        load.in_flight -= 1
        left.under_way -= 1
        if not isinstance(outcome, Accepted | Rejected):
            load.limit = max(1, load.limit // 2)
        elif in_time and not left.under_way:
            _set_limit(left.account, load, max(load.limit, left.limit))
        elif not in_time and load.limit < SLOW_LIMIT:
            load.limit += 1
    if in_time and not left.under_way:
        answered_in_time(left.account, left.count, seconds)


def part_ended(account: Account) -> None:
    """Count a part less: it had left sends unanswered, and its sending thread is free now."""
    with _process.lock:
        _process.loads[key_of(account)].parts -= 1
        _process.parts -= 1


def _set_limit(account: Account, load: Load, limit: int) -> None:
    """Set the limit of a load; the caller holds the lock."""
    load.limit = min(WINDOW, limit)
    if load.is_logged and not load.slow:
        load.is_logged = False
        log.info("account.recovered", account_id=account.id)


def _log_slow(key: Key, load: Load) -> None:
    """Log that an account is slow, unless it may still turn out to have been cut too soon."""
    if not load.is_logged and monotonic() > load.cut_at + settings.PATIENCE_SECONDS:
        load.is_logged = True
        log.warning("account.slow", account_id=key, limit=load.limit, in_flight=load.in_flight)


def add_in_doubt(count: int) -> None:
    """Count deliveries that are in doubt now, or with a negative count that no longer are."""
    with _process.lock:
        _process.in_doubt += count
