"""Calls of SMS services: which are authentic, and what they say."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from messaging.providers import REGISTRY
from rme.core import ids
from rme.core.provider import CallbackRequest, DeliveryReceipt, InboundSms, Provider, UnknownCode
from tests.fakes import providers as fakes
from tests.fakes.providers import SECRET, SETTINGS, Call

URL = "https://rme.example/hooks/one"
KINDS = sorted(SETTINGS)


def provider(kind: str, **given: Any) -> Any:
    made = REGISTRY[kind]
    return made(made.Settings.model_validate({**SETTINGS[kind], **given}))


def arrived(call: Call, url: str = URL, later: timedelta = timedelta()) -> CallbackRequest:
    return CallbackRequest(
        url, call.method, call.query, call.headers, call.body, datetime.now(UTC) + later
    )


def fresh() -> UUID:
    return ids.new_id()


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_authentic_as_it_was_signed_alone(kind: str) -> None:
    attempt = fresh()
    call = fakes.report(kind, URL, attempt, "delivered")
    own = provider(kind)
    assert own.is_authentic(arrived(call))
    assert not own.is_authentic(arrived(call._replace(headers={}, query="")))
    changed = {
        "twilio": call._replace(body=call.body.replace(b"delivered", b"sent")),
        "vonage": call._replace(body=call.body.replace(b"delivered", b"submitted")),
        "kannel": call._replace(query=call.query.replace(str(attempt), str(fresh()))),
        "http_sms": call._replace(query=call.query.replace(str(attempt), str(fresh()))),
    }
    assert not own.is_authentic(arrived(changed[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_another_accounts_secret_signs_nothing(kind: str) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    names = {"twilio": "auth_token", "vonage": "signature_secret"}
    other = provider(kind, **{names.get(kind, "callback_secret"): "another" * 8})
    assert not other.is_authentic(arrived(call))


@pytest.mark.parametrize("kind", ["twilio", "kannel", "http_sms"])
def test_a_signature_is_of_one_accounts_url(kind: str) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert not provider(kind).is_authentic(arrived(call, "https://rme.example/hooks/two"))


@pytest.mark.parametrize("kind", ["vonage", "kannel", "http_sms"])
def test_without_a_secret_nothing_is_authentic(kind: str) -> None:
    name = {"vonage": "signature_secret"}.get(kind, "callback_secret")
    own = provider(kind, **{name: ""})
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert not own.is_authentic(arrived(call))
    assert not own.is_authentic(arrived(Call("GET", "key=&from=1&text=STOP")))


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        ("twilio", timedelta(days=7)),
        ("vonage", timedelta(hours=1)),
        ("kannel", timedelta(days=7)),
        ("http_sms", timedelta(days=7)),
    ],
)
def test_a_call_of_long_ago_is_a_replay(kind: str, window: timedelta) -> None:
    call = fakes.report(kind, URL, fresh(), "delivered")
    assert provider(kind).is_authentic(arrived(call, later=window - timedelta(minutes=1)))
    assert not provider(kind).is_authentic(arrived(call, later=window + timedelta(minutes=1)))
    assert not provider(kind).is_authentic(arrived(call, later=-timedelta(minutes=6)))


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
def test_vonage_claims_that_say_nothing(claims: dict[str, Any]) -> None:
    receipt = {"client_ref": str(fresh()), "status": "delivered"}
    try:
        call = fakes.vonage(receipt, **claims)
    except TypeError:  # the library writes no such claim
        return
    assert not provider("vonage").is_authentic(arrived(call))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Bearer a.b.c", "Basic x", "Bearer é"]
)
def test_vonage_headers_that_are_no_token(header: str) -> None:
    assert not provider("vonage").is_authentic(arrived(Call("POST", "", {"authorization": header})))


def test_vonage_takes_no_unsigned_token() -> None:
    token = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE5MDAwMDAwMDB9."
    call = Call("POST", "", {"authorization": f"Bearer {token}"})
    assert not provider("vonage").is_authentic(arrived(call))


def test_twilio_signs_as_its_own_documentation_does() -> None:
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
        arrived(own, "https://mycompany.com/myapp.php")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["sent", "delivered", "failed"])
def test_a_report_says_what_became_of_an_attempt(kind: str, word: str) -> None:
    attempt = fresh()
    (receipt,) = provider(kind).read_callback(arrived(fakes.report(kind, URL, attempt, word)))
    assert (receipt.attempt_id, receipt.type) == (attempt, word)


@pytest.mark.parametrize(
    ("kind", "reason"), [("twilio", "Twilio 30005"), ("vonage", "Vonage 1240")]
)
def test_a_dead_number_is_a_bounce(kind: str, reason: str) -> None:
    attempt = fresh()
    (receipt,) = provider(kind).read_callback(arrived(fakes.report(kind, URL, attempt, "dead")))
    assert receipt == DeliveryReceipt(attempt, "bounced", reason)


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
def test_kannel_bits(status: str, kind: str | UnknownCode | None) -> None:
    attempt = fresh()
    call = fakes.signed(URL, attempt, f"status={quote(status)}&reason=ACK%2F")
    expected: list[object] = [kind] if kind else []
    if isinstance(kind, str):
        expected = [DeliveryReceipt(attempt, kind, "ACK/", status == "34")]
    assert list(provider("kannel").read_callback(arrived(call))) == expected


@pytest.mark.parametrize(("code", "soft"), [("30003", True), ("30007", False), ("", False)])
def test_twilio_codes_that_are_known(code: str, soft: bool) -> None:
    attempt = fresh()
    call = fakes.report("twilio", URL, attempt, "failed", code)
    expected = [DeliveryReceipt(attempt, "failed", f"Twilio {code}" if code else None, soft)]
    assert list(provider("twilio").read_callback(arrived(call))) == expected


def test_a_code_that_no_table_has_is_counted_beside_the_receipt() -> None:
    attempt = fresh()
    call = fakes.report("twilio", URL, attempt, "failed", "30999")
    assert list(provider("twilio").read_callback(arrived(call))) == [
        DeliveryReceipt(attempt, "failed", "Twilio 30999"),
        UnknownCode("30999"),
    ]


@pytest.mark.parametrize("kind", ["twilio", "vonage", "http_sms"])
@pytest.mark.parametrize(("status", "counted"), [("teleported", True), ("", False)])
def test_a_status_that_no_table_has_is_counted(kind: str, status: str, counted: bool) -> None:
    call = fakes.report(kind, URL, fresh(), status)
    expected = [UnknownCode("teleported")] if counted else []
    assert list(provider(kind).read_callback(arrived(call))) == expected


def test_what_says_nothing_new_is_no_unknown_code() -> None:
    for kind, words in (("twilio", ("queued", "sending")), ("http_sms", ("queued", "Accepted"))):
        for word in words:
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
def test_what_a_person_wrote(kind: str) -> None:
    callback = arrived(INBOUND[kind])
    own = provider(kind)
    assert own.is_authentic(callback)
    (receipt,) = own.read_callback(callback)
    assert isinstance(receipt, InboundSms)
    assert (receipt.sender, receipt.text, receipt.answered) == ("+12025550123", "Stop", False)


def test_twilio_says_that_it_answered() -> None:
    form = {"From": "+12025550123", "Body": "Stop", "OptOutType": "STOP"}
    (receipt,) = provider("twilio").read_callback(arrived(fakes.twilio(URL, "", form)))
    assert receipt == InboundSms("+12025550123", "", "Stop", answered=True)


@pytest.mark.parametrize("t", ["", "x", "0", "99999999999", "999999999999999999", "-5"])
def test_kannel_takes_what_a_person_wrote_with_its_time_alone(t: str) -> None:
    query = f"key={quote(SECRET)}&t={t}&from=%2B12025550123&text=Stop"
    assert not provider("kannel").is_authentic(arrived(Call("GET", query)))


CALLED: dict[str, dict[str, Any]] = {
    **SETTINGS,
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
def test_junk_is_neither_authentic_nor_read(kind: str, number: int) -> None:
    own = REGISTRY[kind](REGISTRY[kind].Settings.model_validate(CALLED[kind]))
    assert not own.is_authentic(arrived(JUNK[number]))
    assert list(own.read_callback(arrived(JUNK[number]))) == []


def test_every_kind_that_is_called_back_is_among_these() -> None:
    called = {
        kind for kind, made in REGISTRY.items() if made.is_authentic is not Provider.is_authentic
    }
    assert called == set(CALLED)
