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

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import structlog
from django.conf import settings

from messaging.delivery.accounts import circuits
from messaging.domain.accounts.admission import (
    WINDOW,
    Availability,
    CircuitState,
    UnavailableReason,
)
from messaging.domain.accounts.routing import Key, key_of
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


_UNLIMITED = Availability()


class ProcessLoad:
    """What a process has under way, in all and by each account. Its threads share it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds, as `time.monotonic` does."""
        self.clock = clock
        self._lock = threading.Lock()
        self._parts = 0
        self.accounts: dict[Key, Load] = {}
        self.in_doubt = 0
        """Deliveries that were left unanswered, or whose outcomes could not be stored yet; without
        those of the current window.
        """

    def window(self) -> int:
        """Return how many sends the next window may hold: a window less what is in doubt."""
        return 0 if self._parts >= THREADS else max(0, WINDOW - self.in_doubt)

    def availability(self, accounts: Iterable[Account]) -> dict[Key, Availability]:
        """Return how many sends each account takes now; at most one call to Redis."""
        account_by_key = {key_of(account): account for account in accounts}
        broken = circuits.broken([a.id for a in account_by_key.values() if a.id is not None])
        return {key: self._availability(key, broken) for key in account_by_key}

    def _availability(self, key: Key, broken: Collection[Key]) -> Availability:
        load = self.accounts.get(key)
        if key in broken:
            probed_at = load.probed_at if load else float("-inf")
            in_flight = load.in_flight if load else 0
            due = self.clock() >= probed_at + PROBE_SECONDS
            count = max(0, circuits.PROBES - in_flight) if due else 0
            return Availability(count, FULL_WAIT, UnavailableReason.CIRCUIT, CircuitState.OPEN)
        if load is None or not load.slow:
            return _UNLIMITED
        if not load.is_logged and self.clock() > load.cut_at + settings.PATIENCE_SECONDS:
            _log_slow(key, load)
        if load.parts >= PARTS or self._parts >= THREADS - RESERVED_THREADS:
            return Availability(0, FULL_WAIT, UnavailableReason.SLOW)
        count = max(0, min(load.limit - load.in_flight, self.window() - RESERVED))
        return Availability(count, FULL_WAIT, UnavailableReason.SLOW)

    def note_sends(self, counts: Mapping[Key, int]) -> None:
        """Note that sends leave by accounts whose count is limited: a broken one was probed now."""
        with self._lock:
            for key, count in counts.items():
                if count:
                    self.accounts.setdefault(key, Load()).probed_at = self.clock()

    def is_slow(self, account: Account) -> bool:
        """Return whether an account has lately left sends unanswered."""
        load = self.accounts.get(key_of(account))
        return load is not None and load.slow

    def free_parts(self, account: Account) -> int:
        """Return how many parts the sends of an account may be divided into; at least one."""
        load = self.accounts.get(key_of(account))
        if load is None or not load.slow:
            return 1
        threads = THREADS - RESERVED_THREADS - self._parts
        return max(1, min(PARTS - load.parts, threads))

    def answer_seconds(self, account: Account) -> float:
        """Return how long a part of a window may wait for an account's answers, in seconds."""
        longest: float = settings.PATIENCE_SECONDS
        load = self.accounts.get(key_of(account))
        if load is None or load.slow:
            return longest * LEAST_WAIT
        return min(longest, max(longest * USUAL_WAIT, USUAL_TIMES * load.usual))

    # --- the answers of windows ---------------------------------------------------------------

    def answered_in_time(self, account: Account, count: int, seconds: float) -> None:
        """Note how long an account took for all sends of a part, and raise a limit that was cut."""
        load = self.accounts.setdefault(key_of(account), Load())
        load.usual = max(seconds, load.usual + (seconds - load.usual) / 8)
        if load.slow and 2 * count >= load.limit:
            with self._lock:
                _set_limit(account, load, load.limit + STEP)

    def cut_limit(self, account: Account, answered: int) -> None:
        """Cut an account's limit to half, or to what it answered of a part in time if less."""
        with self._lock:
            load = self.accounts.setdefault(key_of(account), Load())
            load.limit = max(1, min(load.limit // 2, answered))
            load.cut_at = self.clock()

    def left_unanswered(self, account: Account, count: int, under_way: int) -> LeftSends:
        """Count the sends of a part that stay under way, of `count` in all."""
        with self._lock:
            load = self.accounts.setdefault(key_of(account), Load())
            load.in_flight += under_way
            load.parts += 1
            self._parts += 1
            return LeftSends(account, load.limit, count, under_way)

    def answered_late(self, left: LeftSends, outcome: Outcome, seconds: float) -> None:
        """Count the outcome of a send that had been left unanswered, `seconds` after it left.

        The account has the limit again that it had if all came within `PATIENCE_SECONDS`.
        """
        in_time = seconds <= settings.PATIENCE_SECONDS
        with self._lock:
            load = self.accounts[key_of(left.account)]
            load.in_flight -= 1
            left.under_way -= 1
            if not isinstance(outcome, Accepted | Rejected):
                load.limit = max(1, load.limit // 2)
            elif in_time and not left.under_way:
                _set_limit(left.account, load, max(load.limit, left.limit))
            elif not in_time and load.limit < SLOW_LIMIT:
                load.limit += 1
        if in_time and not left.under_way:
            self.answered_in_time(left.account, left.count, seconds)

    def part_ended(self, account: Account) -> None:
        """Count a part less: it had left sends unanswered, and its sending thread is free now."""
        with self._lock:
            self.accounts[key_of(account)].parts -= 1
            self._parts -= 1

    def add_in_doubt(self, count: int) -> None:
        """Count deliveries that are in doubt now, or with a negative count that no longer are."""
        with self._lock:
            self.in_doubt += count


def _set_limit(account: Account, load: Load, limit: int) -> None:
    """Set the limit of a load; the caller holds the lock."""
    load.limit = min(WINDOW, limit)
    if load.is_logged and not load.slow:
        load.is_logged = False
        log.info("account.recovered", account_id=account.id)


def _log_slow(key: Key, load: Load) -> None:
    """Log that an account is slow, once it can no longer turn out to have been cut too soon."""
    load.is_logged = True
    log.warning("account.slow", account_id=key, limit=load.limit, in_flight=load.in_flight)
