"""Reading and checking provider callbacks: their parameters, their age, and signed URLs.

A service that signs nothing gets a callback URL for each message that carries our own signature.
Nothing here raises for what the other side sent.
"""

import hashlib
import hmac
from datetime import datetime, timedelta
from urllib.parse import parse_qs, parse_qsl, urlencode

from rme.core import ids
from rme.core.provider import CallbackRequest, Dispatch

RECEIPT_AGE = timedelta(days=7)
"""A receipt for an older attempt is refused: networks give up after three days."""
_CLOCK_SKEW = timedelta(minutes=5)
_PARAMETERS_LIMIT = 200


def parameters(callback: CallbackRequest) -> dict[str, str]:
    """Return the parameters of a call's form and query. The query takes precedence."""
    text = callback.body.decode("utf-8", "replace")
    is_json = "json" in callback.headers.get("content-type", "")
    sources = ("" if is_json else text, callback.query)
    return {name: values[0] for source in sources for name, values in _parse(source).items()}


def form_pairs(body: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a form in their order."""
    try:
        return parse_qsl(
            body.decode("utf-8", "replace"),
            keep_blank_values=True,
            max_num_fields=_PARAMETERS_LIMIT,
        )
    except ValueError:
        return []


def _parse(source: str) -> dict[str, list[str]]:
    try:
        return parse_qs(source, keep_blank_values=True, max_num_fields=_PARAMETERS_LIMIT)
    except ValueError:
        return {}


def is_recent(moment: datetime, callback: CallbackRequest, max_age: timedelta) -> bool:
    """Return whether a time is at most `max_age` before a call, with five minutes of clock skew."""
    return callback.received_at - max_age <= moment <= callback.received_at + _CLOCK_SKEW


# --- URLs that carry our own signature ------------------------------------------------------------


def signed_url(dispatch: Dispatch, secret: str) -> str:
    """Return the signed URL for one attempt's receipts; empty without a URL or a secret."""
    if not dispatch.callback_url or not secret:
        return ""
    attempt_id = dispatch.attempt_id
    signature = _sign(dispatch.callback_url, attempt_id, secret)
    query = urlencode({"attempt": attempt_id, "sign": signature})
    return f"{dispatch.callback_url}?{query}"


def is_signed(callback: CallbackRequest, secret: str) -> bool:
    """Return whether a call came to a signed URL, for an attempt that is not too old."""
    values = parameters(callback)
    attempt_id = values.get("attempt", "")
    expected = _sign(callback.url, attempt_id, secret)
    if not secret or not hmac.compare_digest(expected.encode(), values.get("sign", "").encode()):
        return False
    parsed = ids.parse(attempt_id)
    return parsed is not None and is_recent(ids.moment(parsed), callback, RECEIPT_AGE)


def has_secret(callback: CallbackRequest, secret: str) -> bool:
    """Return whether a call has the secret as its `key`, for services that can do no better."""
    key = parameters(callback).get("key", "") or callback.headers.get("x-callback-key", "")
    return bool(secret) and hmac.compare_digest(key.encode(), secret.encode())


def _sign(url: str, attempt_id: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{url}|{attempt_id}".encode(), hashlib.sha256).hexdigest()
