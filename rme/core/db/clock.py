"""The database's clock, which all processes share.

A worker whose own clock is wrong by minutes must not send early or take a lease for ended. The
database is asked every ten seconds; in between, the time runs on by the monotonic clock, which
nobody sets.
"""

import time
from datetime import UTC, datetime, timedelta

from django.db import connection

from rme.core.cache import TtlCache

_asked: TtlCache[str, tuple[datetime, float]] = TtlCache(seconds=10)


def _ask() -> tuple[datetime, float]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0], time.monotonic()


def now() -> datetime:
    """Give the present, in UTC, by the database's clock."""
    answer = _asked.get("now", _ask)
    assert answer is not None  # _ask answers or raises
    return answer[0] + timedelta(seconds=time.monotonic() - answer[1])


def of_epoch(seconds: float) -> datetime:
    """Read an instant that a statement gives as `extract(epoch FROM …)::float8`: exact to the µs.

    Many are read so, for it costs a twentieth of what Django takes for a timestamp.
    """
    return datetime.fromtimestamp(seconds, UTC)


def iso(moment: datetime | None) -> str | None:
    """Write an instant as the API does: ISO 8601, UTC, to the millisecond, with Z."""
    if moment is None:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text.removesuffix(".000") + "Z"
