"""Waiting for the outcome of a message (RFC 7240, `Prefer: wait`)."""

import re
import threading
import time
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from messaging.accept.results import RecipientError, RecipientResult, Refusal, SendResult
from messaging.domain.statuses import Status
from messaging.models import Delivery
from messaging.reports import queries
from messaging.store import lookups
from rme.core import errors

LONGEST = 30
"""The most seconds that a request waits, even if it asks for more."""

_WAIT = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?([0-9]{1,9})\"?\s*(?=,|;|$)", re.IGNORECASE)
_UNDER_WAY = {Status.ACCEPTED, Status.SENDING, Status.UNKNOWN, Status.SCHEDULED}
_SENT = {Status.SENT, Status.DELIVERED}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
"""Seconds between two reads of the statuses: short at first, then longer and longer."""

_waiting_requests = threading.BoundedSemaphore(settings.WAITING_REQUESTS)


class _DeliveryStatus(NamedTuple):
    status: str
    reason: str | None
    detail: str | None


def seconds(prefer: str | None) -> int:
    """Return how many seconds a `Prefer` header asks to wait; 0 for not at all.

    Preferences that are not known are ignored (RFC 7240, section 2).
    """
    found = _WAIT.search(prefer or "")
    return min(int(found[1]), LONGEST) if found else 0


def until_sent(organization_id: str, longest: int) -> Callable[[SendResult], SendResult | Refusal]:
    """Return a function that waits until a message was sent or has failed.

    It returns the accepted result unchanged when `longest` seconds are over, and at once if too
    many threads of this process wait already, as RFC 7240 allows.
    """

    def wait(accepted: SendResult) -> SendResult | Refusal:
        if not _waiting_requests.acquire(blocking=False):
            return accepted
        try:
            return _final(organization_id, accepted, longest)
        finally:
            _waiting_requests.release()

    return wait


def _final(organization_id: str, accepted: SendResult, longest: int) -> SendResult | Refusal:
    message_id, request_id = accepted.message_id, accepted.request_id
    if accepted.status == Status.SCHEDULED or message_id is None:
        return accepted
    until, pause = time.monotonic() + longest, _FIRST_PAUSE
    while time.monotonic() < until:
        time.sleep(min(pause, max(0.0, until - time.monotonic())))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        deliveries = _read(organization_id, message_id)
        if any(delivery.status in _UNDER_WAY for delivery in deliveries):
            continue
        if any(delivery.status in _SENT for delivery in deliveries):
            return read_result(organization_id, message_id, request_id=request_id)
        return Refusal(_error(deliveries[0], message_id), request_id)
    return accepted


def read_result(organization_id: str, message_id: UUID | str, *, request_id: str) -> SendResult:
    """Read a stored message in the form of a send result, with status 200. Raises NotFound."""
    message = queries.detail(organization_id, str(message_id)).message
    return SendResult(
        message_id=str(message.message_id),
        status=message.status,
        resolved_channel=message.channel,
        provider=message.provider,
        scheduled_for=message.scheduled_for,
        recipients=[
            RecipientResult(
                contact_id=delivery.contact_id,
                status=delivery.status,
                resolved_channel=delivery.resolved_channel,
                provider=delivery.provider,
                scheduled_for=delivery.scheduled_for,
                error=RecipientError(delivery.error.code, delivery.error.message)
                if delivery.error
                else None,
            )
            for delivery in message.recipients
        ],
        request_id=request_id,
        status_code=200,
    )


def _read(organization_id: str, message_id: str) -> list[_DeliveryStatus]:
    deliveries = Delivery.objects.filter(
        lookups.of_message(message_id), organization_id=organization_id
    )
    rows = deliveries.order_by("position").values_list("status", "reason", "detail")
    return [_DeliveryStatus(*row) for row in rows]


def _error(delivery: _DeliveryStatus, message_id: str) -> errors.ApiError:
    """Return the error of a failed delivery: the gate's own, or ProviderError for all others."""
    kind = errors.by_code().get(delivery.reason or "", errors.ProviderError)
    return kind(delivery.detail, message_id=message_id)
