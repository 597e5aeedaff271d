"""Vonage: the request, what its answers mean, and which of its calls are authentic."""

from typing import Any

import orjson
import pytest

from rme.core.outcomes import OptOut
from rme.core.provider import DeliveryReceipt, Sms
from rme.transport import Transport
from tests.fakes import NO_TRANSPORT
from tests.fakes import providers as fakes
from tests.fakes.providers import Call
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    SET_UP,
    STOPPED,
    kind_of,
)
from tests.messaging.providers.sms_scene import (
    CALLBACK,
    NOBODY_KNOWS,
    TAKEN,
    URL,
    arrived,
    ask,
    basic,
    fresh,
    provider,
    send,
)


def test_request_has_the_documented_form(transport: Transport) -> None:
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


def problem(number: int) -> bytes:
    address = f"https://developer.vonage.com/api-errors/messages#{number}"
    return orjson.dumps({"type": address, "title": "Problem"})


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
        (422, problem(1120), SET_UP),
        (402, problem(1070), SET_UP),
        (403, problem(1160), ELSEWHERE),
        (422, problem(1170), DEAD),
        (403, problem(1240), STOPPED),
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


@pytest.mark.parametrize("body", [problem(1120), b'{"invalid_parameters": [{"name": "from"}]}'])
def test_rejected_sender_of_the_request_is_not_the_accounts_fault(
    transport: Transport, body: bytes
) -> None:
    assert kind_of(ask(transport, "vonage", 422, body, sender="Zürich Events AG")) == ELSEWHERE


@pytest.mark.parametrize(
    ("title", "soft", "opt_out"),
    [("1240", False, OptOut.STOP), ("1180", True, None), ("1050", False, None)],
)
def test_errors_of_reports(title: str, soft: bool, opt_out: OptOut | None) -> None:
    attempt = fresh()
    call = fakes.report("vonage", URL, attempt, "failed", title)
    assert list(provider("vonage").read_callback(arrived(call))) == [
        DeliveryReceipt(attempt, "failed", f"Vonage {title}", soft, opt_out=opt_out)
    ]


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
def test_invalid_claims_are_not_authentic(claims: dict[str, Any]) -> None:
    receipt = {"client_ref": str(fresh()), "status": "delivered"}
    try:
        call = fakes.vonage(receipt, **claims)
    except TypeError:  # the library writes no such claim
        return
    assert not provider("vonage").is_authentic(arrived(call), NO_TRANSPORT)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Bearer a.b.c", "Basic x", "Bearer é"]
)
def test_malformed_authorization_header_is_not_authentic(header: str) -> None:
    assert not provider("vonage").is_authentic(
        arrived(Call("POST", "", {"authorization": header})), NO_TRANSPORT
    )


def test_an_unsigned_token_is_not_authentic() -> None:
    token = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE5MDAwMDAwMDB9."
    call = Call("POST", "", {"authorization": f"Bearer {token}"})
    assert not provider("vonage").is_authentic(arrived(call), NO_TRANSPORT)


def test_id_returned_by_vonage_may_be_in_capitals() -> None:
    attempt = fresh()
    call = fakes.vonage({"client_ref": str(attempt).upper(), "status": "delivered"})
    assert provider("vonage").read_callback(arrived(call)) == [
        DeliveryReceipt(attempt, "delivered")
    ]
