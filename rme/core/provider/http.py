"""What providers over HTTP share: settings, requests, missing answers, and reading answers.

Nothing here raises for what the other side sent.
"""

from collections.abc import Mapping
from typing import Annotated

import orjson
from pydantic import Field, StringConstraints

from rme.core import exact_json
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable, Unknown
from rme.core.provider.base import ProviderSettings
from rme.core.provider.credentials import DESTINATION, CaPem
from rme.transport.messages import CommonHeaders, Failure, FailureKind, Reply, Request, retry_after
from rme.transport.performer import Performer

__all__ = [
    "HttpSettings",
    "Timeout",
    "Url",
    "check",
    "check_outcome",
    "encodable",
    "failure_outcome",
    "read_object",
    "retry_after",
    "text_of",
    "value_at",
]

Timeout = Annotated[float, Field(gt=0, le=25)]
"""Seconds. It must end well within a claim's lease."""
Url = Annotated[
    str, StringConstraints(pattern=r"^https?://[\x21-\x7e]+$", max_length=500), DESTINATION
]


class HttpSettings(ProviderSettings):
    """How long an answer is awaited, in seconds, and which certificates are trusted."""

    timeout: Timeout = 20.0
    ca_pem: CaPem = ""

    def request(
        self,
        url: str,
        body: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
        *,
        method: str = "POST",
        http2: bool = False,
        common_headers: CommonHeaders | None = None,
    ) -> Request:
        """Return a request with the account's time-out and certificates."""
        return Request(
            url,
            body,
            method,
            headers,
            common_headers,
            connect_timeout=min(5.0, self.timeout),
            timeout=self.timeout,
            http2=http2,
            ca_pem=self.ca_pem,
        )


def failure_outcome(failure: Failure) -> Outcome:
    """Return what a missing answer means."""
    match failure.kind:
        case FailureKind.NOT_SENT:
            return Retryable(failure.reason)
        case FailureKind.UNKNOWN:
            return Unknown(failure.reason)
    return Misconfigured(failure.reason)


def check(transport: Performer, request: Request) -> Outcome:
    """Perform a request that sends nothing; return what its answer means."""
    (reply,) = transport.perform([request])
    return check_outcome(reply)


def check_outcome(reply: Reply | Failure) -> Outcome:
    """Return what the answer to a request that sends nothing means for the account's settings."""
    if isinstance(reply, Failure):
        away = reply.kind in (FailureKind.NOT_SENT, FailureKind.UNKNOWN)
        return Retryable(reply.reason) if away else Misconfigured(reply.reason)
    if 200 <= reply.status < 300:
        return Accepted()
    reason = f"refused: {reply.status}"
    if reply.status == 429 or reply.status >= 500:
        return Retryable(reason, retry_after(reply))
    return Misconfigured(reason)


def read_object(body: bytes) -> dict[str, object]:
    """Return a JSON object; an empty one for anything else. Long whole numbers are texts."""
    try:
        value = exact_json.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def text_of(value: object, limit: int = 200) -> str:
    """Return a JSON text or number as one line; an empty text for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).replace("\x00", " ").split())[:limit]


def value_at(value: object, path: str) -> object:
    """Return the value at a path like `messages.0.id`; None if there is none."""
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which cannot be encoded."""
    return text.encode(errors="replace").decode()
