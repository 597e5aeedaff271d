"""A call of the API, as it goes through the client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

Value = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Call:
    """What a call sends. `keyed`: it takes an Idempotency-Key."""

    method: str
    path: str
    query: Mapping[str, Value] = field(default_factory=dict)
    headers: Mapping[str, Value] = field(default_factory=dict)
    body: object = None
    keyed: bool = False


def quoted(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")
