"""Vonage: the request, what its answers mean, and which of its calls are authentic."""

from typing import Any

import orjson
import pytest

from rme.core.provider import Sms
from rme.transport import Transport
from tests.fakes import providers as fakes
from tests.fakes.providers import Call
from tests.messaging.providers.accounts import ATTEMPT, CONTENT, DEAD, LATER, SET_UP, kind_of
from tests.messaging.providers.sms_scene import (
    CALLBACK,
    NOBODY_KNOWS,
    TAKEN,
    arrived,
    ask,
    basic,
    fresh,
    provider,
    send,
)


def test_the_request(transport: Transport) -> None:
    own = {"base_url": "{}", "api_key": "k", "api_secret": "s", "sender": "+12025550100"}
    seen = send(transport, "vonage", own, Sms("+12025550123", "Grüße \ud800"))
    assert (seen.method, seen.path) == ("POST", "/v1/messages")
    assert seen.header("authorization") == basic("k:s")
    assert orjson.loads(seen.body) == {
        "message_type": "text",
        "channel": "sms",
        "to": "12025550123",
        "from": "12025550100",
        "text": "Grüße ?",
        "client_ref": str(ATTEMPT),
        "webhook_url": CALLBACK,
        "webhook_version": "v1",
    }


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
def test_outcomes(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "vonage", status, body)) == expected


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": None},
        {"iat": "soon"},
        {"iat": 1e300},
        {"iat": []},
        {"payload_hash": None},
        {"payload_hash": ""},
    ],
    ids=str,
)
def test_claims_that_are_not_valid(claims: dict[str, Any]) -> None:
    receipt = {"client_ref": str(fresh()), "status": "delivered"}
    try:
        call = fakes.vonage(receipt, **claims)
    except TypeError:  # the library writes no such claim
        return
    assert not provider("vonage").is_authentic(arrived(call))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Bearer a.b.c", "Basic x", "Bearer é"]
)
def test_headers_that_are_no_token(header: str) -> None:
    assert not provider("vonage").is_authentic(arrived(Call("POST", "", {"authorization": header})))


def test_an_unsigned_token_is_not_authentic() -> None:
    token = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE5MDAwMDAwMDB9."
    call = Call("POST", "", {"authorization": f"Bearer {token}"})
    assert not provider("vonage").is_authentic(arrived(call))
