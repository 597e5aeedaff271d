"""The tracer by OpenTelemetry's SDK, which exports by OTLP over HTTP.

All but the headers is set by the library's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_TRACES_SAMPLER`, …: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
By default new traces are sampled, and others as their parent was. Spans wait in a bounded queue for
a thread of the library; those that find it full are dropped.
"""

import time
from collections.abc import Iterable

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.re import parse_env_headers

from rme import __version__
from rme.core.telemetry.spans import NO_ATTRIBUTES, Attributes, SpanKind

_KINDS = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}
_propagator = TraceContextTextMapPropagator()


class OpenTelemetrySpan:
    """A span of the library (`spans.Span`)."""

    def __init__(self, span: trace.Span, started: int) -> None:
        self._span, self._started = span, started
        context = span.get_span_context()
        self.traceparent = ""
        if context.trace_flags.sampled:
            self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-01"

    def end(
        self,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        name: str = "",
        seconds: float | None = None,
        error: str = "",
    ) -> None:
        if name:
            self._span.update_name(name)
        for key, value in attributes.items():
            self._span.set_attribute(key, value)
        if error:
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, error))
        self._span.end(None if seconds is None else self._started + int(seconds * 1e9))


class OpenTelemetryTracer:
    """Makes spans by the library (`spans.Tracer`)."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("rme", __version__)

    def begin(
        self,
        name: str,
        kind: SpanKind,
        *,
        parent: str = "",
        links: Iterable[str] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        age: float = 0.0,
    ) -> OpenTelemetrySpan:
        started = time.time_ns() - int(age * 1e9)
        span = self._tracer.start_span(
            name,
            _context(parent),
            _KINDS[kind],
            dict(attributes),
            [trace.Link(_span_context(each)) for each in links],
            started,
        )
        return OpenTelemetrySpan(span, started)

    def stop(self) -> None:
        self._provider.shutdown()


def _context(traceparent: str) -> Context:
    """Return the context of a traceparent; one without a parent if it is not valid."""
    return _propagator.extract({"traceparent": traceparent}, Context())


def _span_context(traceparent: str) -> trace.SpanContext:
    return trace.get_current_span(_context(traceparent)).get_span_context()


def build() -> OpenTelemetryTracer:
    """Build the tracer of this process, and start its thread."""
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "rme"}))
    # From the settings, since a file may hold them.
    headers = parse_env_headers(settings.OTEL_EXPORTER_OTLP_HEADERS, liberal=True) or None
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(headers=headers)))
    return OpenTelemetryTracer(provider)
