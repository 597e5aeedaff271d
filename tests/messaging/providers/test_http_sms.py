"""SMS services by HTTP as settings describe them: the request and what answers mean."""

from urllib.parse import urlsplit

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers import REGISTRY
from rme.core.provider import Sms
from rme.transport import Transport
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
)
from tests.messaging.providers.sms_scene import CALLBACK, NOBODY_KNOWS, TAKEN, ask, fields, send

PARAMETERS = '{"messages": [{"n": "{number}", "t": "{text}", "ref": "{id}"}], "from": "{sender}"}'


def test_the_request_has_what_the_settings_name(transport: Transport) -> None:
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
def test_parameters_that_are_no_object_are_refused(text: str) -> None:
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
