"""Spans: what a tracer makes, and what its users need to know of it."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

Attributes = Mapping[str, str | int]
NO_ATTRIBUTES: Attributes = {}


class SpanKind(Enum):
    """What a span stands for, as OpenTelemetry has it."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    CONSUMER = "consumer"


class Span(Protocol):
    """A step that has begun."""

    traceparent: str
    """The context for what follows from the step; empty if it is not sampled."""

    def end(
        self,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        name: str = "",
        seconds: float | None = None,
        error: str = "",
    ) -> None:
        """End the step: now, or `seconds` after its beginning. `name` replaces its name, if that
        was not known before, and `error` is a short text.
        """


class Tracer(Protocol):
    """Makes spans and hands them to the exporter, which blocks no caller."""

    def begin(
        self,
        name: str,
        kind: SpanKind,
        *,
        parent: str = "",
        links: Iterable[str] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        age: float = 0.0,
    ) -> Span:
        """Begin a step, which began `age` seconds ago, below the step of a traceparent."""

    def stop(self) -> None:
        """Export the remaining spans."""
