"""Limits of guesses at passwords, codes and client secrets, which also work while Redis is away.

Redis counts. While it doesn't answer, PostgreSQL counts from zero, in windows that begin with the
first guess. The counts of an outage stay in PostgreSQL until they expire.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from rme.core.db import clock
from rme.core.redis.rate_limits import Limit, LimitDecision, limiter
from rme.tenants.models import GuessCount


def take(key: str, *limits: Limit) -> LimitDecision:
    """Count a guess against all limits, or against none if one of them refuses it."""
    decision = limiter.take(key, *limits)
    return decision if decision.is_counted else _take_stored(key, limits)


def check(key: str, *limits: Limit) -> LimitDecision:
    """Return the decision that a guess would get now; count nothing."""
    decision = limiter.take(key, *limits, cost=0)
    return decision if decision.is_counted else _check_stored(key, limits)


def give_back(key: str, *limits: Limit) -> None:
    """Undo the count of one correct guess."""
    limiter.give_back(key, *limits)
    if limiter.away:
        rows = GuessCount.objects.filter(key__in=_keys(key, limits), count__gt=0)
        rows.update(count=F("count") - 1)


def reset(key: str, *limits: Limit) -> None:
    """Drop all counts against the limits."""
    limiter.reset(key, *limits)
    if limiter.away:
        GuessCount.objects.filter(key__in=_keys(key, limits)).delete()


def purge() -> int:
    """Delete counts whose window is over; return how many."""
    return GuessCount.objects.filter(until__lte=clock.now()).delete()[0]


def _take_stored(key: str, limits: Sequence[Limit]) -> LimitDecision:
    """Count in PostgreSQL; row locks count guesses with the same key one by one."""
    now = clock.now()
    windows = {
        name: (limit.count, now + timedelta(seconds=limit.seconds))
        for name, limit in zip(_keys(key, limits), limits, strict=True)
    }
    with transaction.atomic():
        GuessCount.objects.bulk_create(
            [GuessCount(key=name, count=0, until=until) for name, (_, until) in windows.items()],
            ignore_conflicts=True,
        )
        rows = list(GuessCount.objects.select_for_update().filter(key__in=windows).order_by("key"))
        for row in rows:
            if row.until <= now:
                row.count, row.until = 0, windows[row.key][1]
        decision = _decide([row.until for row in rows if row.count >= windows[row.key][0]], now)
        if decision.allowed:
            for row in rows:
                row.count += 1
            GuessCount.objects.bulk_update(rows, ["count", "until"])
    return decision


def _check_stored(key: str, limits: Sequence[Limit]) -> LimitDecision:
    now = clock.now()
    counts = dict(zip(_keys(key, limits), (limit.count for limit in limits), strict=True))
    rows = GuessCount.objects.filter(key__in=counts, until__gt=now)
    return _decide([row.until for row in rows if row.count >= counts[row.key]], now)


def _decide(full: Sequence[datetime], now: datetime) -> LimitDecision:
    """Return the decision on a guess; `full` is when the windows without room end."""
    if not full:
        return LimitDecision(allowed=True)
    wait = (max(full) - now).total_seconds()
    return LimitDecision(allowed=False, retry_after=max(1, round(wait)))


def _keys(key: str, limits: Sequence[Limit]) -> list[str]:
    return [f"{key}:{limit.seconds}" for limit in limits]
