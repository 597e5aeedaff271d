"""What SMS services call us with, signed as they sign: (method, query, headers, body)."""

import base64
import hashlib
import hmac
import time
from typing import Any, NamedTuple
from urllib.parse import urlencode

import jwt
import orjson

from messaging.providers import callbacks
from rme.core.provider import Dispatch, Sms

FORM = "application/x-www-form-urlencoded"
SECRET = "a secret of more than thirty-two characters"
SETTINGS: dict[str, dict[str, Any]] = {
    "twilio": {"account_sid": "AC" + "0" * 32, "auth_token": SECRET},
    "vonage": {"api_key": "k", "api_secret": "s", "signature_secret": SECRET},
    "kannel": {
        "base_url": "https://kannel.example",
        "username": "u",
        "password": "p",
        "callback_secret": SECRET,
    },
    "http_sms": {"url": "https://sms.example", "callback_secret": SECRET},
}
"""Settings of an account of each service whose calls are written here."""


class Call(NamedTuple):
    """A call as it comes in."""

    method: str
    query: str = ""
    headers: dict[str, str] = {}
    body: bytes = b""


def twilio(url: str, query: str, form: dict[str, str], secret: str = SECRET) -> Call:
    full = f"{url}?{query}" if query else url
    text = full + "".join(f"{name}{value}" for name, value in sorted(form.items()))
    digest = hmac.new(secret.encode(), text.encode(), hashlib.sha1).digest()
    headers = {"x-twilio-signature": base64.b64encode(digest).decode(), "content-type": FORM}
    return Call("POST", query, headers, urlencode(form).encode())


def vonage(fields: dict[str, Any], secret: str = SECRET, **claims: Any) -> Call:
    body = orjson.dumps(fields)
    digest = hashlib.sha256(body).hexdigest()
    signed = {"iat": int(time.time()), "iss": "Vonage", "payload_hash": digest, **claims}
    token = jwt.encode(signed, secret, algorithm="HS256")
    return Call(
        "POST",
        "",
        {"authorization": f"Bearer {token}", "content-type": "application/json"},
        body,
    )


def signed(url: str, attempt_id: Any, query: str, secret: str = SECRET) -> Call:
    """Call the URL that an account gave with its message, as Kannel does."""
    own = callbacks.signed_url(Dispatch(str(attempt_id), Sms("", ""), url), secret)
    return Call("GET", f"{own.partition('?')[2]}&{query}")


def report(kind: str, url: str, attempt_id: Any, word: str, code: str = "") -> Call:
    """Report `sent`, `delivered` or `failed` on an attempt, as a service does.

    With a code it says why; `dead` as the word is a failure by which the number is dead.
    """
    match kind:
        case "twilio":
            status = {"failed": "undelivered", "dead": "undelivered"}.get(word, word)
            code = {"dead": "30005"}.get(word, code)
            form = {"MessageSid": "SM1", "MessageStatus": status} | (
                {"ErrorCode": code} if code else {}
            )
            return twilio(url, f"attempt={attempt_id}", form)
        case "vonage":
            status = {"sent": "submitted", "failed": "undeliverable", "dead": "rejected"}.get(
                word, word
            )
            title = {"dead": "1190"}.get(word, code)
            fields: dict[str, Any] = {"client_ref": str(attempt_id), "status": status}
            return vonage(fields | ({"error": {"title": title}} if title else {}))
        case "kannel":
            status = {"sent": "8", "delivered": "1", "failed": "2"}[word]
            return signed(url, attempt_id, f"status={status}&reason={code}")
    return signed(url, attempt_id, f"status={word}")
