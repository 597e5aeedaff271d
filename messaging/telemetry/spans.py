"""The spans of a message's way after its acceptance. Their attributes are ids and kinds alone.

An attempt, a receipt and a webhook request are below the request by which their message came, also
hours later. A claim is of many messages: it has a trace of its own, with a link to that of each.
"""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from rme.core.outcomes import NOT_TRIED, Accepted, Outcome
from rme.core.telemetry import tracing
from rme.core.telemetry.spans import Span, SpanKind, Tracer

LINKS = 128
"""The most links of a span: OpenTelemetry's own default."""


class TracedDelivery(Protocol):
    """What a span needs of a claimed delivery."""

    @property
    def id(self) -> str: ...
    @property
    def message_id(self) -> str: ...
    @property
    def organization_id(self) -> str: ...
    @property
    def channel(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def traceparent(self) -> str: ...


class TracedAccount(Protocol):
    """What a span needs of a provider account."""

    @property
    def id(self) -> int | None: ...
    @property
    def kind(self) -> str: ...


def claimed(channel: str, deliveries: Iterable[TracedDelivery], seconds: float) -> None:
    """Make the span of a claim that has just ended, if any of its messages is traced."""
    tracer = tracing.tracer()
    if tracer is None:
        return
    contexts = list(dict.fromkeys(filter(None, (each.traceparent for each in deliveries))))
    if contexts:
        attributes: dict[str, str | int] = {
            "rme.channel": channel,
            "rme.traced_messages": len(contexts),
        }
        links = contexts[:LINKS]
        tracer.begin(
            "claim", SpanKind.CONSUMER, links=links, attributes=attributes, age=seconds
        ).end()


def begin_attempt(
    tracer: Tracer, delivery: TracedDelivery, attempt_id: str, account: TracedAccount
) -> Span:
    """Begin the span of an attempt."""
    attributes: dict[str, str | int] = {
        "rme.organization_id": delivery.organization_id,
        "rme.message_id": delivery.message_id,
        "rme.delivery_id": delivery.id,
        "rme.attempt_id": attempt_id,
        "rme.channel": delivery.channel,
        "rme.claim": delivery.fence,
        "rme.provider": account.kind,
    }
    if account.id is not None:
        attributes["rme.account_id"] = account.id
    name = f"attempt {account.kind}"
    return tracer.begin(name, SpanKind.CLIENT, parent=delivery.traceparent, attributes=attributes)


def end_attempt(span: Span, outcome: Outcome | None, seconds: float) -> None:
    """End the span of an attempt by its outcome, without the provider's own words."""
    name = "NotTried" if outcome is NOT_TRIED else type(outcome).__name__
    error = "" if isinstance(outcome, Accepted) else name
    span.end({"rme.outcome": name}, seconds=seconds, error=error)


def received(delivery_id: UUID, traceparent: str | None, kinds: Iterable[str]) -> None:
    """Make a span for each receipt of a delivery, if its message is traced; by their types."""
    tracer = tracing.tracer()
    if tracer is None or not traceparent:
        return
    for kind in kinds:
        attributes = {"rme.delivery_id": str(delivery_id), "rme.event": kind}
        name = f"receipt {kind}"
        tracer.begin(name, SpanKind.CONSUMER, parent=traceparent, attributes=attributes).end()


def begin_webhook(traceparent: str, endpoint_id: int, event_id: UUID, tries: int) -> Span | None:
    """Begin the span of a request to a webhook endpoint, if its message is traced."""
    tracer = tracing.tracer()
    if tracer is None or not traceparent:
        return None
    attributes: dict[str, str | int] = {
        "rme.endpoint_id": endpoint_id,
        "rme.event_id": str(event_id),
        "rme.tries": tries,
    }
    return tracer.begin("webhook", SpanKind.CLIENT, parent=traceparent, attributes=attributes)


def end_webhook(span: Span, status: int, *, is_ok: bool) -> None:
    """End the span of a request by its status; 0: there was no response."""
    attributes = {"http.response.status_code": status} if status else {}
    span.end(attributes, error="" if is_ok else str(status or "no response"))
