"""SMS providers for their tests: what they send, what answers mean, and calls that arrive."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from messaging.providers import REGISTRY
from rme.core import ids
from rme.core.outcomes import Accepted, Outcome, Unknown
from rme.core.provider import CallbackRequest, Dispatch, Sms
from rme.transport import Transport
from tests.fakes import http1
from tests.fakes.http1 import Http1Server, Seen
from tests.fakes.providers import SETTINGS as CALLED_BACK
from tests.fakes.providers import Call
from tests.messaging.providers.accounts import ATTEMPT

TAKEN = (Accepted,)
NOBODY_KNOWS = (Unknown,)
URL = "https://rme.example/hooks/one"
KINDS = sorted(CALLED_BACK)
SID = "AC" + "a" * 32
CALLBACK = "https://rme.example/hooks/one"
TWILIO = {"base_url": "{}", "account_sid": SID, "auth_token": "t", "sender": "+12025550100"}
KANNEL = {"base_url": "{}", "username": "u", "password": "p&", "callback_secret": "secret"}
SETTINGS: dict[str, dict[str, Any]] = {
    "twilio": {"base_url": "{}", "account_sid": SID, "auth_token": "secret"},
    "vonage": {"base_url": "{}", "api_key": "key", "api_secret": "secret"},
    "kannel": {"base_url": "{}", "username": "user", "password": "secret"},
    "http_sms": {
        "url": "{}/send",
        "id_path": "messages.0.id",
        "code_path": "error.code",
        "dead_codes": ["E1"],
        "recipient_codes": ["E2"],
        "content_codes": ["E3"],
        "account_codes": ["E4"],
        "later_codes": ["E5", "500"],
    },
}
"""The least settings of each kind; {} is the server's address."""


def send(
    transport: Transport, kind: str, settings: dict[str, Any], sms: Sms, callback: str = CALLBACK
) -> Seen:
    """Send an SMS and return the request that arrived."""
    with Http1Server(lambda c, _: http1.respond(c, 200, b"{}")) as server:
        own = {
            name: value.replace("{}", server.url.rstrip("/"), 1) if name.endswith("url") else value
            for name, value in settings.items()
        }
        made = REGISTRY[kind](REGISTRY[kind].Settings.model_validate(own))
        made.send([Dispatch(str(ATTEMPT), sms, callback)], transport)
    (seen,) = server.seen
    return seen


def fields(text: str) -> dict[str, str]:
    """Return the fields of a form or query, each once."""
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def basic(text: str) -> str:
    """Return the header of HTTP Basic authentication."""
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def ask(
    transport: Transport,
    kind: str,
    status: int,
    body: bytes,
    headers: dict[str, str] | None = None,
    sender: str = "",
    settings: dict[str, Any] | None = None,
    **given: Any,
) -> Outcome:
    """Send one SMS to a server that answers so; return the outcome."""
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        wanted = {
            name: value.replace("{}", server.url.rstrip("/")) if isinstance(value, str) else value
            for name, value in {**SETTINGS[kind], **(settings or {}), **given}.items()
        }
        made = REGISTRY[kind](REGISTRY[kind].Settings.model_validate(wanted))
        sms = Sms("+12025550123", "Hi", sender)
        (outcome,) = made.send([Dispatch(str(ATTEMPT), sms)], transport)
    return outcome


def provider(kind: str, **given: Any) -> Any:
    """Build the provider of a kind, with the settings by which services call back."""
    made = REGISTRY[kind]
    return made(made.Settings.model_validate({**CALLED_BACK[kind], **given}))


def arrived(call: Call, url: str = URL, later: timedelta = timedelta()) -> CallbackRequest:
    """Return a call as it arrives, now or later."""
    return CallbackRequest(
        url, call.method, call.query, call.headers, call.body, datetime.now(UTC) + later
    )


def fresh() -> UUID:
    """Return the id of an attempt."""
    return ids.new_id()
