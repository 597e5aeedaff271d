"""What goes over the wire for an SMS."""

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers import REGISTRY
from rme.core.provider import Dispatch, Sms
from rme.transport import Transport
from tests.fakes import http1
from tests.fakes.http1 import Http1Server, Seen
from tests.messaging.providers.accounts import ATTEMPT

SID = "AC" + "a" * 32
CALLBACK = "https://rme.example/hooks/one"


def send(
    transport: Transport, kind: str, settings: dict[str, Any], sms: Sms, callback: str = CALLBACK
) -> Seen:
    """Send an SMS and give the request that arrived."""
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
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


TWILIO = {"base_url": "{}", "account_sid": SID, "auth_token": "t", "sender": "+12025550100"}


def test_twilio(transport: Transport) -> None:
    seen = send(transport, "twilio", TWILIO, Sms("+12025550123", "Grüße & more\n€ 😀"))
    assert (seen.method, seen.path) == ("POST", f"/2010-04-01/Accounts/{SID}/Messages.json")
    assert seen.header("authorization") == basic(f"{SID}:t")
    assert fields(seen.body.decode()) == {
        "To": "+12025550123",
        "From": "+12025550100",
        "Body": "Grüße & more\n€ 😀",
        "StatusCallback": f"{CALLBACK}?attempt={ATTEMPT}",
    }


def test_twilio_by_a_service_and_an_api_key(transport: Transport) -> None:
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


def test_vonage(transport: Transport) -> None:
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


KANNEL = {"base_url": "{}", "username": "u", "password": "p&", "callback_secret": "secret"}


@pytest.mark.parametrize(("text", "coding"), [("Grüße, 5 €", "0"), ("Привет", "2"), ("😀", "2")])
def test_kannel(transport: Transport, text: str, coding: str) -> None:
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


def test_kannel_asks_for_no_report_without_a_secret(transport: Transport) -> None:
    own = {**KANNEL, "callback_secret": ""}
    seen = send(transport, "kannel", own, Sms("+12025550123", "Hi"))
    assert "dlr" not in seen.path


PARAMETERS = '{"messages": [{"n": "{number}", "t": "{text}", "ref": "{id}"}], "from": "{sender}"}'


def test_http_sms_fills_in_what_the_settings_name(transport: Transport) -> None:
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
def test_http_sms_as_a_form_or_a_query(transport: Transport, style: str) -> None:
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
def test_http_sms_takes_no_parameters_that_are_no_object(text: str) -> None:
    with pytest.raises(ValidationError, match="parameters_json"):
        REGISTRY["http_sms"].Settings.model_validate(
            {"url": "https://x.example", "parameters_json": text}
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
