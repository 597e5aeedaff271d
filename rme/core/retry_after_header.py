"""How long the other side wants to be left alone."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rme.transport import Reply


def retry_after(reply: Reply, *, now: datetime | None = None) -> float | None:
    """Read the seconds, or the date, of `Retry-After` (RFC 9110 §10.2.3); None for what is neither.

    A date in the past is no wish. However long it is, it is for the caller to cap.
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
