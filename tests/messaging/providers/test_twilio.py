"""Twilio: the request, what its answers mean, and what its calls say."""

from typing import Any

import orjson
import pytest

from rme.core.outcomes import OptOut
from rme.core.provider import DeliveryReceipt, InboundSms, Sms, UnknownCode
from rme.transport import Transport
from tests.fakes import NO_TRANSPORT
from tests.fakes import providers as fakes
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    RECIPIENT,
    SET_UP,
    STOPPED,
    kind_of,
)
from tests.messaging.providers.sms_scene import (
    CALLBACK,
    NOBODY_KNOWS,
    SID,
    TAKEN,
    TWILIO,
    URL,
    arrived,
    ask,
    basic,
    fields,
    fresh,
    provider,
    send,
)


def test_request_has_the_documented_form(transport: Transport) -> None:
    seen = send(transport, "twilio", TWILIO, Sms("+12025550123", "Grüße & more\n€ 😀"))
    assert (seen.method, seen.path) == ("POST", f"/2010-04-01/Accounts/{SID}/Messages.json")
    assert seen.header("authorization") == basic(f"{SID}:t")
    assert fields(seen.body.decode()) == {
        "To": "+12025550123",
        "From": "+12025550100",
        "Body": "Grüße & more\n€ 😀",
        "StatusCallback": f"{CALLBACK}?attempt={ATTEMPT}",
    }


def test_a_request_by_a_service_and_an_api_key(transport: Transport) -> None:
    service, key = "MG" + "b" * 32, "SK" + "c" * 32
    own = {**TWILIO, "sender": service, "api_key_sid": key, "api_key_secret": "k"}
    seen = send(transport, "twilio", own, Sms("+12025550123", "Hi"), "http://127.0.0.1/hooks/one")
    assert seen.header("authorization") == basic(f"{key}:k")
    assert fields(seen.body.decode()) == {
        "To": "+12025550123",
        "MessagingServiceSid": service,
        "Body": "Hi",
    }


def test_the_senders_name_of_the_request_goes_before_the_accounts(transport: Transport) -> None:
    seen = send(transport, "twilio", TWILIO, Sms("+12025550123", "Hi", "Ann"))
    assert fields(seen.body.decode())["From"] == "Ann"


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
        (400, code(21610), STOPPED),
        (400, code(21612), ELSEWHERE),
        (400, code(21602), CONTENT),
        (400, code(21605), CONTENT),
        (400, code(21617), CONTENT),
        (400, code(21212), SET_UP),
        (400, code(21408), ELSEWHERE),
        (400, code(21603), SET_UP),
        (400, code(21606), MESSAGE_LATER),
        (403, code(21608), ELSEWHERE),
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
def test_outcomes(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "twilio", status, body)) == expected


@pytest.mark.parametrize("number", [21212, 21603, 21606, 21659, 21660, 21661, 21703, 21705])
def test_rejected_sender_of_the_request_is_not_the_accounts_fault(
    transport: Transport, number: int
) -> None:
    outcome = ask(transport, "twilio", 400, code(number), sender="Acme")
    assert kind_of(outcome) == ELSEWHERE


@pytest.mark.parametrize(
    ("number", "expected"), [(21606, ELSEWHERE), (21659, ELSEWHERE), (21660, SET_UP)]
)
def test_short_code_of_the_account_does_not_send_abroad(
    transport: Transport, number: int, expected: object
) -> None:
    outcome = ask(transport, "twilio", 400, code(number), settings={"sender": "892737"})
    assert kind_of(outcome) == expected


def test_sender_name_unusable_by_twilio_is_left_out(transport: Transport) -> None:
    # https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id: ASCII letters
    seen = send(transport, "twilio", TWILIO, Sms("+12025550123", "Hi", "Zürich"))
    assert fields(seen.body.decode())["From"] == TWILIO["sender"]
    outcome = ask(transport, "twilio", 400, code(21212), sender="Zürich")
    assert kind_of(outcome) != ELSEWHERE  # the account's own sender was refused


def test_signature_equals_the_example_in_twilios_documentation() -> None:
    # https://www.twilio.com/docs/usage/security: the example, with the token 12345
    form = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+12349013030",
        "Digits": "1234",
        "From": "+12349013030",
        "To": "+18005551212",
    }
    own = fakes.twilio("https://mycompany.com/myapp.php", "foo=1&bar=2", form, "12345")
    assert own.headers["x-twilio-signature"] == "0/KCTR6DLpKmkAf8muzZqo1nDgQ="
    assert provider("twilio", auth_token="12345").is_authentic(
        arrived(own, "https://mycompany.com/myapp.php"), NO_TRANSPORT
    )


@pytest.mark.parametrize(
    ("code", "soft"), [("30003", True), ("30006", True), ("30007", False), ("", False)]
)
def test_known_codes_are_read(code: str, soft: bool) -> None:
    attempt = fresh()
    call = fakes.report("twilio", URL, attempt, "failed", code)
    expected = [DeliveryReceipt(attempt, "failed", f"Twilio {code}" if code else None, soft)]
    assert list(provider("twilio").read_callback(arrived(call))) == expected


def test_number_stopped_at_twilio_is_reported_as_stopped() -> None:
    attempt = fresh()
    call = fakes.report("twilio", URL, attempt, "failed", "21610")
    assert list(provider("twilio").read_callback(arrived(call))) == [
        DeliveryReceipt(attempt, "failed", "Twilio 21610", opt_out=OptOut.STOP)
    ]


def test_unknown_code_is_counted_besides_the_receipt() -> None:
    attempt = fresh()
    call = fakes.report("twilio", URL, attempt, "failed", "30999")
    assert list(provider("twilio").read_callback(arrived(call))) == [
        DeliveryReceipt(attempt, "failed", "Twilio 30999"),
        UnknownCode("30999"),
    ]


def test_inbound_sms_answered_by_twilio() -> None:
    form = {"From": "+12025550123", "Body": "Stop", "OptOutType": "STOP"}
    (receipt,) = provider("twilio").read_callback(arrived(fakes.twilio(URL, "", form)))
    assert receipt == InboundSms("+12025550123", "", "Stop", answered=True, taken_as="STOP")
