"""A collector of traces on loopback: OTLP over HTTP, read by OpenTelemetry's own messages."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.http1 import Http1Server, Seen, respond


class ReceivedSpan(NamedTuple):
    """A span as a collector got it. Ids are hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    links: list[str]
    attributes: Mapping[str, object]
    failed: bool

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.id}-01"


class Collector(Http1Server):
    """Takes all that is exported to it."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.spans: list[ReceivedSpan] = []
        self.services: set[str] = set()
        """The names of the services that exported."""

    def _answer(self, connection: Any, seen: Seen) -> None:
        assert seen.path == "/v1/traces"
        exported = ExportTraceServiceRequest.FromString(seen.body)
        for resource in exported.resource_spans:
            attributes = {each.key: each.value for each in resource.resource.attributes}
            self.services.add(attributes["service.name"].string_value)
            for scope in resource.scope_spans:
                self.spans += [_read(span) for span in scope.spans]
        respond(connection, 200, b"", {"Content-Type": "application/x-protobuf"})

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]


def _read(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [link.trace_id.hex() for link in span.links],
        {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes},
        span.status.code == span.status.STATUS_CODE_ERROR,
    )
