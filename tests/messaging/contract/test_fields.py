"""Values of fields at the border between valid and invalid."""

import pytest

from tests import factories
from tests.push.subscriptions import Browser
from tests.rest import error, message

pytestmark = pytest.mark.django_db


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
