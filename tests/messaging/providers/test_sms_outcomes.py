"""What the answers of SMS services mean, row by row, over the real transport."""

from typing import Any

import orjson
import pytest

from messaging.providers import REGISTRY
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable, Unknown
from rme.core.provider import Dispatch, Sms
from rme.transport import Transport
from tests.fakes import http1
from tests.fakes.http1 import Http1Server
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
)

TAKEN = (Accepted,)
NOBODY_KNOWS = (Unknown,)
SID = "AC" + "0" * 32
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


def ask(
    transport: Transport, kind: str, status: int, body: bytes, headers: dict[str, str] | None = None
) -> Outcome:
    """Send one SMS to a server that gives this answer."""
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        settings = {
            name: value.replace("{}", server.url.rstrip("/")) if isinstance(value, str) else value
            for name, value in SETTINGS[kind].items()
        }
        made = REGISTRY[kind](REGISTRY[kind].Settings.model_validate(settings))
        (outcome,) = made.send([Dispatch(str(ATTEMPT), Sms("+12025550123", "Hi"))], transport)
    return outcome


def code(number: Any) -> bytes:
    return orjson.dumps({"code": number, "message": "refused +12025550123"})


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (201, b'{"sid": "SM1"}', TAKEN),
        (201, b"{}", NOBODY_KNOWS),
        (400, code(21211), DEAD),
        (400, code(21217), DEAD),
        (400, code(21614), DEAD),
        (400, code(21635), DEAD),
        (400, code(21214), RECIPIENT),
        (400, code(21265), RECIPIENT),
        (400, code(21266), RECIPIENT),
        (400, code(21610), RECIPIENT),
        (400, code(21612), RECIPIENT),
        (400, code(21602), CONTENT),
        (400, code(21605), CONTENT),
        (400, code(21617), CONTENT),
        (400, code(21212), SET_UP),
        (400, code(21408), SET_UP),
        (400, code(21603), SET_UP),
        (400, code(21606), SET_UP),
        (403, code(21608), SET_UP),
        (400, code(21609), SET_UP),
        (400, code(21659), SET_UP),
        (400, code(21660), SET_UP),
        (400, code(21661), SET_UP),
        (400, code(21703), SET_UP),
        (400, code(21705), SET_UP),
        (400, code(30002), SET_UP),
        (401, code(20003), SET_UP),
        (404, code(20404), SET_UP),
        (401, b"", SET_UP),
        (429, code(20429), LATER),
        (429, code(14107), LATER),
        (400, code(21611), LATER),
        (400, code(30001), LATER),
        (429, code(63038), LATER),
        (429, b"", LATER),
        (503, b"", LATER),
        (400, code(99999), CONTENT),
        (400, code("21211"), CONTENT),
        (400, code(True), CONTENT),
        (400, b"[1]", CONTENT),
        (500, code(21211), NOBODY_KNOWS),
        (302, b"", NOBODY_KNOWS),
    ],
)
def test_twilio(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "twilio", status, body)) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (202, b'{"message_uuid": "u"}', TAKEN),
        (202, b"{}", NOBODY_KNOWS),
        (200, b'{"message_uuid": "u"}', NOBODY_KNOWS),
        (401, b'{"title": "Unauthorized"}', SET_UP),
        (402, b'{"title": "Low balance"}', SET_UP),
        (403, b"", SET_UP),
        (404, b"", SET_UP),
        (422, b'{"invalid_parameters": [{"name": "to"}]}', DEAD),
        (422, b'{"invalid_parameters": [{"name": "from"}]}', SET_UP),
        (422, b'{"invalid_parameters": [{"name": "text"}]}', CONTENT),
        (422, b'{"invalid_parameters": "to"}', CONTENT),
        (422, b'{"invalid_parameters": [7, {"name": {}}]}', CONTENT),
        (400, b"junk", CONTENT),
        (429, b"", LATER),
        (503, b"", LATER),
        (500, b"", NOBODY_KNOWS),
    ],
)
def test_vonage(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "vonage", status, body)) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (202, b"0: Accepted for delivery", TAKEN),
        (202, b"3: Queued for later delivery", TAKEN),
        (202, b"", NOBODY_KNOWS),
        (200, b"<html>a proxy</html>", NOBODY_KNOWS),
        (400, b"Missing receiver number, rejected", DEAD),
        (400, b"Empty text not allowed, rejected", CONTENT),
        (400, b"Charset or body misformed, rejected", CONTENT),
        (400, b"Sender missing and no global set, rejected", SET_UP),
        (400, b"Number(s) has/have been denied by white- and/or black-lists.", RECIPIENT),
        (403, b"Authorization failed for sendsms", SET_UP),
        (403, b"Number(s) has/have been denied by white- and/or black-lists.", RECIPIENT),
        (404, b"Not found.", SET_UP),
        (503, b"Temporal failure, try again later.", LATER),
        (500, b"", NOBODY_KNOWS),
    ],
)
def test_kannel(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "kannel", status, body)) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b'{"messages": [{"id": 7}]}', TAKEN),
        (202, b"OK", TAKEN),
        (200, b'{"error": {"code": "E1"}}', DEAD),
        (400, b'{"error": {"code": "E1"}}', DEAD),
        (400, b'{"error": {"code": "E2"}}', RECIPIENT),
        (400, b'{"error": {"code": "E3"}}', CONTENT),
        (400, b'{"error": {"code": "E4"}}', SET_UP),
        (400, b'{"error": {"code": "E5"}}', LATER),
        (400, b'{"error": {"code": ["E1"]}}', CONTENT),
        (400, b'{"error": "E1"}', CONTENT),
        (401, b"", SET_UP),
        (429, b"", LATER),
        (500, b"", LATER),  # this account's list says so
        (502, b"", NOBODY_KNOWS),
    ],
)
def test_http_sms(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "http_sms", status, body)) == expected


@pytest.mark.parametrize(
    ("kind", "status", "body", "expected"),
    [
        ("twilio", 201, b'{"sid": "SM1"}', Accepted("SM1")),
        ("vonage", 202, b'{"message_uuid": "u-1"}', Accepted("u-1")),
        ("http_sms", 200, b'{"messages": [{"id": 7}]}', Accepted("7")),
        ("http_sms", 200, b'{"messages": []}', Accepted("")),
        ("twilio", 401, b'{"code": 20003}', Misconfigured("authentication failed")),
    ],
)
def test_id_and_reason(
    transport: Transport, kind: str, status: int, body: bytes, expected: Outcome
) -> None:
    assert ask(transport, kind, status, body) == expected


@pytest.mark.parametrize("kind", sorted(SETTINGS))
@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1e9", None),
        ("٣", None),
        ("99999999999999999999", 1e20),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Fri, 99 Foo 9999 99:99:99", None),
    ],
)
def test_retry_after_is_read_and_junk_is_none(
    transport: Transport, kind: str, wish: str, expected: float | None
) -> None:
    given = wish.encode().decode("latin-1")
    outcome = ask(transport, kind, 503, b"", {"Retry-After": given})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after == expected


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_retry_after_may_be_a_date(transport: Transport, kind: str) -> None:
    outcome = ask(transport, kind, 503, b"", {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after is not None
    assert outcome.retry_after > 1e9
