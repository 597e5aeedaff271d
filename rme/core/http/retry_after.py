"""The `Retry-After` header of a response."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rme.transport import Reply


def retry_after(reply: Reply, *, now: datetime | None = None) -> float | None:
    """Return the seconds until the time of `Retry-After` (RFC 9110 §10.2.3): seconds or a date.

    None if there is none, it is neither, or the date is past. The caller has to cap it.
    """
    text = reply.headers.get("retry-after", "").strip()[:64]
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    seconds = (when.replace(tzinfo=when.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    return seconds if math.isfinite(seconds) and seconds > 0 else None
