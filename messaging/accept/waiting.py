"""Waiting for what became of a message (RFC 7240, `Prefer: wait`)."""

import re
import threading
import time
from collections.abc import Callable

import orjson
from django.conf import settings
from django.db import connection

from messaging.accept.batch import Result
from messaging.models import Delivery
from messaging.models.statuses import Status
from messaging.reports import messages
from rme.core import errors, ids

LONGEST = 30
"""Seconds; who asks for more waits so long."""

_WAIT = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?([0-9]{1,9})\"?\s*(?=,|;|$)", re.IGNORECASE)
_STATUSES = f"""
SELECT status, reason, detail FROM {Delivery._meta.db_table}
WHERE organization_id = %s AND message_id = %s ORDER BY position
"""
_UNDER_WAY = {Status.ACCEPTED, Status.SENDING, Status.UNKNOWN, Status.SCHEDULED}
_LEFT = {Status.SENT, Status.DELIVERED}
_FIRST_LOOK, _LAST_LOOK = 0.01, 0.25
"""Seconds between two looks: soon at first, then ever later."""

_places = threading.BoundedSemaphore(settings.WAITING_REQUESTS)


def seconds(prefer: str | None) -> int:
    """Read how long a `Prefer` header wishes to wait; 0: not at all. Others are ignored (§2)."""
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), LONGEST) if found else 0


def until_left(organization_id: str, longest: int, request_id: str) -> Callable[[Result], Result]:
    """Make what waits, after a 202, until the message has left or failed, or the time is over.

    A process lends only so many of its threads to those who wait: who finds none free is answered
    202 at once, as RFC 7240 lets us.
    """

    def wait(accepted: Result) -> Result:
        if not _places.acquire(blocking=False):
            return accepted
        try:
            return _settled(organization_id, accepted, longest, request_id)
        finally:
            _places.release()

    return wait


def _settled(organization_id: str, accepted: Result, longest: int, request_id: str) -> Result:
    given = orjson.loads(accepted.body)
    message_id = given["messageId"]
    if given["status"] == Status.SCHEDULED:
        return accepted
    until, pause = time.monotonic() + longest, _FIRST_LOOK
    while time.monotonic() < until:
        time.sleep(min(pause, max(0.0, until - time.monotonic())))
        pause = min(pause * 1.5, _LAST_LOOK)
        rows = _look(organization_id, message_id)
        if any(status in _UNDER_WAY for status, _, _ in rows):
            continue
        if any(status in _LEFT for status, _, _ in rows):
            return Result(
                200,
                orjson.dumps(
                    messages.send_result(organization_id, message_id, request_id=request_id)
                ),
            )
        error = _error(rows[0][1], rows[0][2], message_id)
        return Result(error.status, orjson.dumps({"error": error.as_json(request_id)}))
    return accepted


def _look(organization_id: str, message_id: str) -> list[tuple[str, str | None, str | None]]:
    with connection.cursor() as cursor:
        cursor.execute(_STATUSES, [organization_id, ids.parse(message_id)])
        return [(status, reason, detail) for status, reason, detail in cursor.fetchall()]


def _error(reason: str | None, detail: str | None, message_id: str) -> errors.ApiError:
    """Give the error that a delivery ended with: a gate's own, and PROVIDER_ERROR for all else."""
    kind = errors.by_code().get(reason or "", errors.ProviderError)
    return kind(detail, message_id=message_id)
