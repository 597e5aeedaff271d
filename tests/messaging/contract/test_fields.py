"""Values of fields at the border between valid and invalid."""

import warnings
from enum import StrEnum
from typing import Annotated

import orjson
import pytest
from pydantic import ValidationError

from rme.core.http.fields import ENUMERATED, Schema, Upper
from tests import factories
from tests.push.subscriptions import Browser
from tests.rest import error, message, work

pytestmark = pytest.mark.django_db


class Colour(StrEnum):
    RED = "RED"
    BLUE = "BLUE"


class Coloured(Schema):
    colour: Annotated[Colour, ENUMERATED]
    other: Annotated[Annotated[Colour, ENUMERATED], Upper] | None = None


@pytest.mark.parametrize("subject", ["Prix : 5\u00a0€", "👩‍👩‍👧 and family", "مرحبا\u200f!"])
def test_joiners_and_spaces_are_allowed_in_a_line(api, org, subject):
    body = message(factories.contact(org), template=None, context=None)
    answer = api.send({**body, "content": {"subject": subject, "text": "x"}})
    assert answer.status_code == 202, answer.json()


@pytest.mark.parametrize("subject", ["a\nb", "a\x7fb", "a\x85b", "a\u2028b"])
def test_control_characters_and_line_ends_are_refused_in_a_line(api, org, subject):
    body = message(factories.contact(org), template=None, context=None)
    answer = api.send({**body, "content": {"subject": subject, "text": "x"}})
    why = "must not contain control characters"
    assert (answer.status_code, answer.json()) == (
        400,
        error("INVALID_PAYLOAD", f"content.subject: {why}", ("content.subject", why)),
    )


def test_a_whole_number_may_have_a_decimal_point(api, org):
    body = message(factories.contact(org), channel=None, channels=["EMAIL", "SMS"])
    fields = {"strategy": "FIRST_DELIVERED", "push": {"badge": 1.0, "ttl": 1e3}}
    assert api.send({**body, **fields, "fallbackAfter": 60.0}).status_code == 202
    answer = api.send({**body, **fields, "fallbackAfter": 60.5})
    assert answer.json()["error"]["details"] == [
        {"field": "fallbackAfter", "message": "must be a whole number"}
    ]


def test_only_ascii_letters_are_read_in_any_case(api, org):
    person = factories.contact(org)
    assert api.send(message(person, channel="eMail")).status_code == 202
    answer = api.send(message(person, channel="emaıl"))  # whose capital is an I
    assert answer.json()["error"]["details"][0]["field"] == "channel"


@pytest.mark.parametrize(("lasting", "status"), [(None, 201), (1.5e12, 201), ("x", 400)])
def test_a_subscriptions_expiration_time_is_a_number(api, org, lasting, status):
    token = {**Browser().subscription, "expirationTime": lasting}
    device = {"contactId": str(factories.contact(org).pk), "platform": "WEB", "token": token}
    answer = api.call("POST", "/devices", device)
    assert answer.status_code == status, answer.json()


def test_an_enumeration_is_read_by_its_values_and_listed_in_place():
    found = Coloured.model_validate({"colour": "RED", "other": "blue"})
    assert (found.colour, found.other) == (Colour.RED, Colour.BLUE)
    assert isinstance(found.colour, Colour)
    assert Coloured.model_validate({"colour": Colour.RED}).colour is Colour.RED
    with warnings.catch_warnings(action="error"):
        assert found.model_dump_json() == '{"colour":"RED","other":"BLUE"}'
    with pytest.raises(ValidationError, match="'RED' or 'BLUE'"):
        Coloured.model_validate({"colour": "red"})
    shown = Coloured.model_json_schema()
    assert "$defs" not in shown
    assert shown["properties"]["colour"] == {
        "enum": ["RED", "BLUE"],
        "title": "Colour",
        "type": "string",
    }


@pytest.mark.parametrize(
    "number",
    [
        2**64,
        -(2**63) - 1,
        123456789012345678901234567890,
        -123456789012345678901234567890,
    ],
)
def test_integer_that_would_be_rounded_is_rejected_with_its_field(api, org, number):
    body = message(factories.contact(org), context={"variables": {"note": "x", "a": [{"b": 0}]}})
    text = orjson.dumps(body).replace(b'{"b":0}', b'{"b":%d}' % number)
    why = "is a number of more than 64 bits: write it as a string"
    field = "context.variables.a[0].b"
    answers = [api.send(text), api.call("POST", "/messages?dryRun=true", text)]
    assert [(each.status_code, each.json()) for each in answers] == [
        (400, error("INVALID_PAYLOAD", f"{field}: {why}", (field, why)))
    ] * 2


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (b"18446744073709551615", "18446744073709551615"),
        (b"-9223372036854775808", "-9223372036854775808"),
        (b'"123456789012345678901234567890"', "123456789012345678901234567890"),
        (b"1e25", "1e+25"),
    ],
)
def test_other_numbers_are_accepted_unchanged(api, org, handed, given, shown):
    body = message(factories.contact(org), context={"variables": {"note": 0}})
    assert (
        api.send(orjson.dumps(body).replace(b'"note":0', b'"note":%b' % given)).status_code == 202
    )
    work()
    assert [mail.text for mail in handed] == [f"Note: {shown}"]
