"""What all SMS services have in common: requests, outcomes, and authentic calls."""

import time
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from messaging.providers import REGISTRY
from rme.core import addresses
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable
from rme.core.provider import DeliveryReceipt, InboundSms, Provider, Sms, UnknownCode
from rme.transport import Transport
from tests.fakes import NO_TRANSPORT
from tests.fakes import providers as fakes
from tests.fakes.providers import SECRET, Call
from tests.fakes.providers import SETTINGS as CALLED_BACK
from tests.messaging.providers.sms_scene import (
    KANNEL,
    KINDS,
    SETTINGS,
    TWILIO,
    URL,
    arrived,
    ask,
    fresh,
    provider,
    send,
)


@pytest.mark.parametrize("kind", ["twilio", "vonage", "kannel", "http_sms"])
def test_no_text_breaks_a_request(transport: Transport, kind: str) -> None:
    own: dict[str, dict[str, Any]] = {
        "twilio": TWILIO,
        "vonage": {"base_url": "{}", "api_key": "k", "api_secret": "s"},
        "kannel": {**KANNEL, "max_messages": 255},
        "http_sms": {"url": "{}/send"},
    }
    text = "\r\n\0\ud800\U0010ffff" + "x" * 3000
    seen = send(transport, kind, own[kind], Sms("+12025550123", text, "A\r\nB"))
    assert b"xxx" in seen.body + seen.path.encode()


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
def test_retry_after_is_read_and_malformed_one_ignored(
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


@pytest.mark.promise("webhooks-1")
@pytest.mark.parametrize("kind", KINDS)
def test_report_is_authentic_only_as_signed(kind: str) -> None:
    attempt = fresh()
    call = fakes.report(kind, URL, attempt, "delivered")
    own = provider(kind)
    assert own.is_authentic(arrived(call), NO_TRANSPORT)
    assert not own.is_authentic(arrived(call._replace(headers={}, query="")), NO_TRANSPORT)
    changed = {
        "twilio": call._replace(body=call.body.replace(b"delivered", b"sent")),
        "vonage": call._replace(body=call.body.replace(b"delivered", b"submitted")),
        "kannel": call._replace(query=call.query.replace(str(attempt), str(fresh()))),
        "http_sms": call._replace(query=call.query.replace(str(attempt), str(fresh()))),
    }
    assert not own.is_authentic(arrived(changed[kind]), NO_TRANSPORT)


@pytest.mark.parametrize("kind", KINDS)
def test_signature_with_another_secret_is_not_authentic(kind: str) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    names = {"twilio": "auth_token", "vonage": "signature_secret"}
    other = provider(kind, **{names.get(kind, "callback_secret"): "another" * 8})
    assert not other.is_authentic(arrived(call), NO_TRANSPORT)


@pytest.mark.parametrize("kind", ["twilio", "kannel", "http_sms"])
def test_signature_is_valid_for_one_accounts_url(kind: str) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert not provider(kind).is_authentic(
        arrived(call, "https://rme.example/hooks/two"), NO_TRANSPORT
    )


@pytest.mark.parametrize("kind", ["vonage", "kannel", "http_sms"])
def test_without_a_secret_nothing_is_authentic(kind: str) -> None:
    name = {"vonage": "signature_secret"}.get(kind, "callback_secret")
    own = provider(kind, **{name: ""})
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert not own.is_authentic(arrived(call), NO_TRANSPORT)
    assert not own.is_authentic(arrived(Call("GET", "key=&from=1&text=STOP")), NO_TRANSPORT)


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        ("twilio", timedelta(days=7)),
        ("vonage", timedelta(hours=1)),
        ("kannel", timedelta(days=7)),
        ("http_sms", timedelta(days=7)),
    ],
)
def test_old_call_is_rejected_as_a_replay(kind: str, window: timedelta) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert provider(kind).is_authentic(
        arrived(call, later=window - timedelta(minutes=1)), NO_TRANSPORT
    )
    assert not provider(kind).is_authentic(
        arrived(call, later=window + timedelta(minutes=1)), NO_TRANSPORT
    )
    assert not provider(kind).is_authentic(arrived(call, later=-timedelta(minutes=6)), NO_TRANSPORT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["sent", "delivered", "failed"])
def test_report_is_read_as_a_receipt_of_its_attempt(kind: str, word: str) -> None:
    attempt = fresh()
    (receipt,) = provider(kind).read_callback(arrived(fakes.report(kind, URL, attempt, word)))
    assert (receipt.attempt_id, receipt.type) == (attempt, word)


@pytest.mark.parametrize(
    ("kind", "reason"), [("twilio", "Twilio 30005"), ("vonage", "Vonage 1190")]
)
def test_a_dead_number_is_a_bounce(kind: str, reason: str) -> None:
    attempt = fresh()
    (receipt,) = provider(kind).read_callback(arrived(fakes.report(kind, URL, attempt, "dead")))
    assert receipt == DeliveryReceipt(attempt, "bounced", reason)


@pytest.mark.parametrize("kind", ["twilio", "vonage", "http_sms"])
@pytest.mark.parametrize(("status", "counted"), [("teleported", True), ("", False)])
def test_unknown_status_is_counted(kind: str, status: str, counted: bool) -> None:
    call = fakes.report(kind, URL, fresh(), status)
    expected = [UnknownCode("teleported")] if counted else []
    assert list(provider(kind).read_callback(arrived(call))) == expected


def test_intermediate_status_is_not_an_unknown_code() -> None:
    words = [
        ("twilio", "queued"),
        ("twilio", "sending"),
        ("http_sms", "queued"),
        ("http_sms", "Accepted"),
    ]
    for kind, word in words:
        call = fakes.report(kind, URL, fresh(), word)
        assert list(provider(kind).read_callback(arrived(call))) == []


INBOUND = {
    "twilio": fakes.twilio(
        URL, "", {"From": "+12025550123", "To": "+12025550100", "Body": "Stop", "MessageSid": "S"}
    ),
    "vonage": fakes.vonage(
        {"message_type": "text", "from": "12025550123", "to": "12025550100", "text": "Stop"}
    ),
    "kannel": Call(
        "GET", f"key={quote(SECRET)}&t={int(time.time())}&from=%2B12025550123&to=7&text=Stop&id=1"
    ),
    "http_sms": Call(
        "POST",
        "",
        {"x-callback-key": SECRET, "content-type": "application/json"},
        b'{"from": "12025550123", "text": "Stop"}',
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_inbound_sms_is_read(kind: str) -> None:
    callback = arrived(INBOUND[kind])
    own = provider(kind)
    assert own.is_authentic(callback, NO_TRANSPORT)
    (receipt,) = own.read_callback(callback)
    assert isinstance(receipt, InboundSms)
    number = addresses.phone(receipt.sender, "US", receipt.digits)
    assert (number, receipt.text, receipt.answered) == ("+12025550123", "Stop", False)


CALLED: dict[str, dict[str, Any]] = {
    **CALLED_BACK,
    "anymail": {"service": "brevo", "api_key": "k", "callback_secret": f"rme:{SECRET}"},
    "ses": {
        "region": "eu-west-1",
        "access_key_id": "A" * 20,
        "secret_access_key": "s",
        "topic_arn": "arn:aws:sns:eu-west-1:123456789012:rme",
    },
}


JUNK = [
    Call("POST"),
    Call("GET", "a=%00&attempt=%ff&sign=%ed%a0%80&status=1"),
    Call("GET", "&" * 500),
    Call("GET", "attempt=1&status=1&key=" + "x" * 9999),
    Call("POST", "", {"content-type": "application/json"}, b"[]"),
    Call("POST", "", {"content-type": "application/json"}, b'{"status": {}, "client_ref": []}'),
    Call("POST", "", {"content-type": "application/json"}, b'{"error": 7, "status": "rejected"}'),
    Call("POST", "", {"content-type": "application/json"}, b"\xff\xfe{"),
    Call("POST", "", {"content-type": fakes.FORM}, b"\xff=%zz&MessageStatus=delivered"),
]


@pytest.mark.parametrize("kind", sorted(CALLED))
@pytest.mark.parametrize("number", range(len(JUNK)))
def test_malformed_call_is_neither_authentic_nor_read(kind: str, number: int) -> None:
    own = REGISTRY[kind](REGISTRY[kind].Settings.model_validate(CALLED[kind]))
    assert not own.is_authentic(arrived(JUNK[number]), NO_TRANSPORT)
    assert list(own.read_callback(arrived(JUNK[number]))) == []


def test_every_kind_with_callbacks_is_covered() -> None:
    called = {
        kind for kind, made in REGISTRY.items() if made.is_authentic is not Provider.is_authentic
    }
    assert called == set(CALLED)
