"""SMS services by HTTP as settings describe them: the request and what answers mean."""

from urllib.parse import urlsplit

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers import REGISTRY
from rme.core.outcomes import Accepted, OptOut
from rme.core.provider import DeliveryReceipt, Sms
from rme.transport import Transport
from tests.fakes import providers as fakes
from tests.fakes.providers import Call
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    RECIPIENT,
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
    fields,
    fresh,
    provider,
    send,
)

PARAMETERS = '{"messages": [{"n": "{number}", "t": "{text}", "ref": "{id}"}], "from": "{sender}"}'


def test_request_has_the_configured_fields(transport: Transport) -> None:
    own = {
        "url": "{}/v2/send",
        "parameters_json": PARAMETERS,
        "authorization": "Bearer key",
        "sender": "Ann",
    }
    seen = send(transport, "http_sms", own, Sms("+12025550123", 'a "{id}" {to}'))
    assert (seen.method, seen.path) == ("POST", "/v2/send")
    assert seen.header("authorization") == "Bearer key"
    assert orjson.loads(seen.body) == {
        "messages": [{"n": "12025550123", "t": 'a "{id}" {to}', "ref": str(ATTEMPT)}],
        "from": "Ann",
    }


@pytest.mark.parametrize("style", ["FORM", "QUERY"])
def test_the_request_as_a_form_or_a_query(transport: Transport, style: str) -> None:
    own = {
        "url": "{}/send?version=2",
        "format": style,
        "parameters_json": '{"to": "{to}", "text": "{text}", "dlr": "{callback}"}',
        "callback_secret": "secret",
    }
    seen = send(transport, "http_sms", own, Sms("+12025550123", "Grüße &"))
    asked = fields(urlsplit(seen.path).query) | fields(seen.body.decode())
    url = asked.pop("dlr")
    assert asked == {"version": "2", "to": "+12025550123", "text": "Grüße &"}
    assert seen.method == {"FORM": "POST", "QUERY": "GET"}[style]
    assert url.startswith(f"{CALLBACK}?attempt={ATTEMPT}&sign=")


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '"to"'])
def test_parameters_other_than_an_object_are_rejected(text: str) -> None:
    with pytest.raises(ValidationError, match="parameters_json"):
        REGISTRY["http_sms"].Settings.model_validate(
            {"url": "https://x.example", "parameters_json": text}
        )


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
def test_outcomes(transport: Transport, status: int, body: bytes, expected: object) -> None:
    assert kind_of(ask(transport, "http_sms", status, body)) == expected


def test_long_numeric_id_is_kept_exactly(transport: Transport) -> None:
    body = b'{"messages": [{"id": 123456789012345678901234567890}]}'
    outcome = ask(transport, "http_sms", 200, body)
    assert outcome == Accepted("123456789012345678901234567890")


OWN_CODES = {
    "code_path": "code",
    "stop_codes": ["S"],
    "sender_codes": ["F"],
    "route_codes": ["R"],
}


@pytest.mark.parametrize(
    ("code", "sender", "expected"),
    [
        ("S", "", STOPPED),
        ("R", "", ELSEWHERE),
        ("F", "", SET_UP),  # the account's own
        ("F", "Ann", ELSEWHERE),  # the request's
    ],
)
def test_codes_of_stops_senders_and_routes(
    transport: Transport, code: str, sender: str, expected: object
) -> None:
    body = orjson.dumps({"code": code})
    outcome = ask(transport, "http_sms", 400, body, sender=sender, **OWN_CODES)
    assert kind_of(outcome) == expected


def test_reported_stop() -> None:
    attempt = fresh()
    own = provider("http_sms", stop_words=["opted_out"])
    call = fakes.report("http_sms", URL, attempt, "opted_out")
    assert list(own.read_callback(arrived(call))) == [
        DeliveryReceipt(attempt, "failed", "opted_out", opt_out=OptOut.STOP)
    ]


def test_inbound_sms_classified_as_stop_by_the_service() -> None:
    own = provider("http_sms", opt_out_field="keyword")
    call = Call("GET", "from=%2B12025550123&text=NO+MAS&keyword=STOP")
    (sms,) = own.read_callback(arrived(call))
    assert (sms.text, sms.taken_as) == ("NO MAS", "STOP")
