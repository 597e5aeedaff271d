"""Traces by OpenTelemetry, with W3C trace context (https://www.w3.org/TR/trace-context/).

Off unless `TRACING` is set: then `tracer()` is None, and the library is not even imported. A trace
context travels as the text of its `traceparent` header: with requests, with the content of
messages, to providers and to webhooks. One that is not sampled travels no further: it is empty.

Spans name ids, kinds and counts, never addresses, names, texts or URLs.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from django.conf import settings

from rme.core.telemetry.spans import Attributes, Span, SpanKind, Tracer


class _State:
    """The tracer of this process."""

    tracer: Tracer | None = None


_state = _State()
_active: ContextVar[str] = ContextVar("traceparent", default="")


def start() -> None:
    """Start tracing in this process, if it is set. Its threads would not survive a fork."""
    if settings.TRACING:
        # An optional library, which a process without tracing does not load.
        from rme.core.telemetry import opentelemetry_tracer

        _state.tracer = opentelemetry_tracer.build()


def stop() -> None:
    """Export the remaining spans, before the process ends."""
    tracer, _state.tracer = _state.tracer, None
    if tracer:
        tracer.stop()


def tracer() -> Tracer | None:
    """Return the tracer of this process; None where tracing is off."""
    return _state.tracer


def active() -> str:
    """Return the traceparent of the request that this thread answers; empty if there is none."""
    return _active.get()


def trace_id(traceparent: str) -> str:
    """Return the id of the trace that a context belongs to."""
    return traceparent.split("-")[1]


_NOTHING: AbstractContextManager[None] = nullcontext()


def activated(span: Span | None) -> AbstractContextManager[None]:
    """Let what happens meanwhile in this thread belong to a span, if there is one."""
    return _activated(span) if span else _NOTHING


@contextmanager
def _activated(span: Span) -> Iterator[None]:
    token = _active.set(span.traceparent)
    try:
        yield
    finally:
        _active.reset(token)


def set_step(
    name: str, contexts: Iterable[str], attributes: Attributes
) -> AbstractContextManager[None]:
    """Let a step for a set of requests or messages have one span: below the first of their contexts
    that is sampled, with links to the others. Without any there is no span.
    """
    active_tracer = _state.tracer
    return _set_step(active_tracer, name, contexts, attributes) if active_tracer else _NOTHING


@contextmanager
def _set_step(
    active_tracer: Tracer, name: str, contexts: Iterable[str], attributes: Attributes
) -> Iterator[None]:
    sampled = list(dict.fromkeys(filter(None, contexts)))
    if not sampled:
        yield
        return
    first, *links = sampled
    span = active_tracer.begin(
        name, SpanKind.INTERNAL, parent=first, links=links, attributes=attributes
    )
    error = "failed"
    try:
        yield
        error = ""
    finally:
        span.end(error=error)
