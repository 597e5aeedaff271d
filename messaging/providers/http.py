"""What providers over HTTP have in common: settings, failures, and reading what others wrote.

Nothing in here raises for what the other side says.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import parse_qs, parse_qsl, urlencode
from uuid import UUID

import orjson
from pydantic import Field, StringConstraints

from messaging.providers.base import Callback, Dispatch, ProviderSettings, Sms
from rme.core import ids, retry_after_header
from rme.core.credentials import DESTINATION, CaPem
from rme.core.outcomes import Misconfigured, Outcome, Retryable, Unknown
from rme.transport import Failure, FailureKind

Url = Annotated[
    str, StringConstraints(pattern=r"^https?://[\x21-\x7e]+$", max_length=500), DESTINATION
]
CALLBACK_AGE = timedelta(days=7)
"""A report on an older attempt is none: networks give up after three days."""
_AHEAD = timedelta(minutes=5)
_PARAMETERS = 200
retry_after = retry_after_header.retry_after


class HttpSettings(ProviderSettings):
    """How long to wait, and whom to trust."""

    timeout: Annotated[float, Field(gt=0, le=25)] = 20.0
    ca_pem: CaPem = ""


def sms(dispatch: Dispatch) -> Sms:
    """Give the SMS that an account of that channel sends."""
    assert isinstance(dispatch.content, Sms)  # the account's channel
    return dispatch.content


def failed(failure: Failure) -> Outcome:
    """Say what a missing answer means."""
    match failure.kind:
        case FailureKind.NOT_SENT:
            return Retryable(failure.reason)
        case FailureKind.UNKNOWN:
            return Unknown(failure.reason)
    return Misconfigured(failure.reason)


def as_object(body: bytes) -> Mapping[str, Any]:
    """Read a JSON object; anything else is an empty one."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def text_of(value: Any, limit: int = 200) -> str:
    """Give a JSON value as one line of text; nothing for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).replace("\x00", " ").split())[:limit]


def parameters(callback: Callback) -> dict[str, str]:
    """Read the parameters of a call from its form and its query, which goes before the form."""
    text = callback.body.decode("utf-8", "replace")
    form = "json" not in callback.headers.get("content-type", "")
    sources = (text if form else "", callback.query)
    return {name: values[0] for source in sources for name, values in _read(source).items()}


def pairs(body: bytes) -> list[tuple[str, str]]:
    """Read a form as it stands."""
    try:
        return parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_PARAMETERS
        )
    except ValueError:
        return []


def _read(source: str) -> dict[str, list[str]]:
    try:
        return parse_qs(source, keep_blank_values=True, max_num_fields=_PARAMETERS)
    except ValueError:
        return {}


def attempt(text: str) -> UUID | None:
    """Read our id of an attempt."""
    return ids.parse(text)


# --- callbacks that we sign ourselves, for services that sign nothing -----------------------------


def signed_url(dispatch: Dispatch, secret: str) -> str:
    """Give a URL for the reports on one attempt, which nobody else can write; empty without one."""
    if not dispatch.callback_url or not secret:
        return ""
    named = dispatch.attempt_id
    query = urlencode({"attempt": named, "sign": _sign(dispatch.callback_url, named, secret)})
    return f"{dispatch.callback_url}?{query}"


def is_signed(callback: Callback, secret: str) -> bool:
    """Say whether a call came to a URL of ours, on an attempt of the last days."""
    given = parameters(callback)
    named = given.get("attempt", "")
    right = _sign(callback.url, named, secret)
    if not secret or not hmac.compare_digest(right.encode(), given.get("sign", "").encode()):
        return False
    attempt_id = ids.parse(named)
    return attempt_id is not None and is_recent(ids.moment(attempt_id), callback, CALLBACK_AGE)


def is_recent(moment: datetime, callback: Callback, window: timedelta) -> bool:
    """Say whether something is of the time before a call."""
    return callback.received_at - window <= moment <= callback.received_at + _AHEAD


def has_secret(callback: Callback, secret: str) -> bool:
    """Say whether a call names the secret as its `key` (where the service can do no better)."""
    given = parameters(callback).get("key", "") or callback.headers.get("x-callback-key", "")
    return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())


def _sign(url: str, attempt_id: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{url}|{attempt_id}".encode(), hashlib.sha256).hexdigest()
