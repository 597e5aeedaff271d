"""Which calls are made again, and when."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

REPEATABLE = frozenset({"GET", "PATCH", "DELETE"})
"""Methods whose second call has the effect of the first."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
LONGEST_RETRY_AFTER = 60.0
"""A longer Retry-After is left to the caller."""


def is_temporary(status: int, code: str, *, repeatable: bool) -> bool:
    """Return whether an answer may be another one soon, and asking again does no harm.

    A call that was refused for its rate has had no effect, whatever it is.
    """
    if status == 429:
        return True
    if status == 409:
        return repeatable and code == "IDEMPOTENCY_IN_PROGRESS"
    if status == 502:
        return repeatable and code != "PROVIDER_ERROR"
    return repeatable and status in (503, 504)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After: a number, or a date (RFC 9110 §10.2.3)."""
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def wait(retry: int, asked: float | None) -> float:
    """Return how long to wait before a retry, the first being 0, with full jitter.

    What the service asked for is waited in full, and up to a tenth more, so that many clients do
    not come back at once.
    """
    if asked is not None:
        return asked * random.uniform(1.0, 1.1)
    return random.uniform(0.0, min(LONGEST_WAIT, FIRST_WAIT * 2.0**retry))
