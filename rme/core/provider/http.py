"""What providers over HTTP share: settings, what a missing answer means, and reading answers.

Nothing here raises for what the other side sent.
"""

from typing import Annotated

import orjson
from pydantic import Field, StringConstraints

from rme.core.credentials import DESTINATION, CaPem
from rme.core.http.retry_after import retry_after
from rme.core.outcomes import Misconfigured, Outcome, Retryable, Unknown
from rme.core.provider.base import ProviderSettings
from rme.transport import Failure, FailureKind

__all__ = [
    "HttpSettings",
    "Timeout",
    "Url",
    "failure_outcome",
    "read_object",
    "retry_after",
    "text_of",
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


def failure_outcome(failure: Failure) -> Outcome:
    """Return what a missing answer means."""
    match failure.kind:
        case FailureKind.NOT_SENT:
            return Retryable(failure.reason)
        case FailureKind.UNKNOWN:
            return Unknown(failure.reason)
    return Misconfigured(failure.reason)


def read_object(body: bytes) -> dict[str, object]:
    """Return a JSON object; an empty one for anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def text_of(value: object, limit: int = 200) -> str:
    """Return a JSON text or number as one line; an empty text for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).replace("\x00", " ").split())[:limit]
