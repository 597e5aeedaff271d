"""Kannel: the request, what its answers mean, and what its calls say."""

from urllib.parse import quote, urlsplit

import pytest

from rme.core.provider import DeliveryReceipt, Sms, UnknownCode
from rme.transport import Transport
from tests.fakes import NO_TRANSPORT
from tests.fakes import providers as fakes
from tests.fakes.providers import SECRET, Call
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
)
from tests.messaging.providers.sms_scene import (
    CALLBACK,
    KANNEL,
    NOBODY_KNOWS,
    TAKEN,
    URL,
    arrived,
    ask,
    fields,
    fresh,
    provider,
    send,
)


@pytest.mark.parametrize(("text", "coding"), [("Grüße, 5 €", "0"), ("Привет", "2"), ("😀", "2")])
def test_request_has_the_documented_form(transport: Transport, text: str, coding: str) -> None:
    own = {**KANNEL, "smsc": "north", "sender": "Ann"}
    seen = send(transport, "kannel", own, Sms("+12025550123", text))
    given = fields(urlsplit(seen.path).query)
    url = given.pop("dlr-url")
    assert (seen.method, urlsplit(seen.path).path, given) == (
        "GET",
        "/cgi-bin/sendsms",
        {
            "username": "u",
            "password": "p&",
            "to": "+12025550123",
            "from": "Ann",
            "text": text,
            "charset": "UTF-8",
            "coding": coding,
            "smsc": "north",
            "dlr-mask": "27",
        },
    )
    assert url.startswith(f"{CALLBACK}?attempt={ATTEMPT}&sign=")
    assert url.endswith("&status=%d&reason=%A")


def test_no_report_is_requested_without_a_secret(transport: Transport) -> None:
    own = {**KANNEL, "callback_secret": ""}
    seen = send(transport, "kannel", own, Sms("+12025550123", "Hi"))
    assert "dlr" not in seen.path


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
        (403, b"Not routable. Do not try again.", ELSEWHERE),
        (404, b"Not found.", SET_UP),
        (503, b"Temporal failure, try again later.", LATER),
        (500, b"", NOBODY_KNOWS),
    ],
)
def test_outcomes(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "kannel", status, body)) == expected


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("1", "delivered"),
        ("2", "failed"),
        ("8", "sent"),
        ("16", "failed"),
        ("34", "failed"),
        ("4", None),
        ("66", None),
        ("", None),
        ("-1", UnknownCode("-1")),
        ("٨", UnknownCode("٨")),
        ("7", UnknownCode("7")),
        ("9" * 20, UnknownCode("9" * 20)),
    ],
)
def test_report_status_bits_are_read(status: str, kind: str | UnknownCode | None) -> None:
    attempt = fresh()
    call = fakes.signed(URL, attempt, f"status={quote(status)}&reason=ACK%2F")
    expected: list[object] = [kind] if kind else []
    if isinstance(kind, str):
        expected = [DeliveryReceipt(attempt, kind, "ACK/", status == "34")]
    assert list(provider("kannel").read_callback(arrived(call))) == expected


@pytest.mark.parametrize("t", ["", "x", "0", "99999999999", "999999999999999999", "-5"])
def test_an_inbound_sms_without_its_time_is_not_authentic(t: str) -> None:
    query = f"key={quote(SECRET)}&t={t}&from=%2B12025550123&text=Stop"
    assert not provider("kannel").is_authentic(arrived(Call("GET", query)), NO_TRANSPORT)
