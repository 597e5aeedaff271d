"""How long a worker may render one delivery, and the failure of one that takes longer.

Rendering has limits of its own (`rendering.limits`); this is for what they do not see. The delivery
fails alone. Where the process had to be ended (`rme.core.process.time_budget`), the process that
takes its place fails the delivery, and the rest of the batch is sent when its lease has ended.
"""

import time
from contextlib import AbstractContextManager
from threading import Thread
from types import TracebackType

import orjson
import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error, connection, transaction

from messaging.content.rendering import RenderLimit
from messaging.domain.deliveries import ClaimedDelivery
from messaging.domain.statuses import EventType, Status, StatusReason
from messaging.domain.transitions import Transition
from messaging.store.events import EventRow, write_events
from messaging.store.transitions import apply_transitions
from rme.core.db import clock
from rme.core.process.time_budget import StepOverrun, StepTimers, TimedStep

log = structlog.get_logger(__name__)

REASON = "rendering takes too long"


def running(timers: StepTimers) -> AbstractContextManager[None]:
    """Run the timers while several deliveries are rendered, which costs less than for each."""
    return timers.running(settings.RENDER_SECONDS)


def limited(
    timers: StepTimers, organization_id: str, claimed: ClaimedDelivery
) -> AbstractContextManager[None]:
    """Return the context to render a delivery in: it raises RenderLimit if that takes too long."""
    step = [claimed.message_id, claimed.id, claimed.fence, claimed.channel, claimed.test]
    return _RenderStep(timers, settings.RENDER_SECONDS, orjson.dumps([organization_id, *step]))


class _RenderStep(TimedStep):
    __slots__ = ()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, (StepOverrun, SoftTimeLimitExceeded)):
            raise RenderLimit(REASON) from None


def fail_later(step: bytes) -> None:
    """Fail the delivery that ended a process, in a thread, since the database may be away."""
    Thread(target=_fail_until_done, args=(step,), name="render_limit", daemon=True).start()


def _fail_until_done(step: bytes) -> None:
    until = time.monotonic() + settings.LEASE_SECONDS  # then another worker may claim it
    try:
        while time.monotonic() < until:
            try:
                fail(step)
            except Error as error:
                log.warning("render_limit.failed", error=type(error).__name__)
                connection.close()
                time.sleep(1)
            else:
                return
    finally:
        connection.close()


def fail(step: bytes) -> None:
    """Fail the delivery of a step that ended its process, unless another worker has claimed it."""
    organization_id, message_id, delivery_id, fence, channel, is_test = orjson.loads(step)
    failed = Transition(
        id=delivery_id,
        fence=fence,
        status=Status.FAILED,
        due_at=None,
        reason=StatusReason.TEMPLATE_ERROR,
        detail=REASON,
    )
    event = EventRow(
        organization_id,
        message_id,
        delivery_id,
        EventType.FAILED,
        clock.now(),
        channel=channel,
        detail={"reason": StatusReason.TEMPLATE_ERROR},
        test=is_test,
    )
    with transaction.atomic():
        if apply_transitions([failed]):
            write_events([event])
            log.error("render_limit.exceeded", delivery_id=delivery_id, message_id=message_id)
