"""Values that callers write in other forms: ids, times and addresses of queries, tokens."""

import jsonschema
import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from messaging.models import ConsentEntry, Delivery, ProviderAccount
from push.models import Device
from rme.core import ids
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db


def test_an_id_in_upper_case_is_the_same_id(org, api):
    person = factories.contact(org)
    body = message(person)
    body["to"] = [{"contactId": str(person.pk).upper()}]
    sent = api.send(body).json()["messageId"]
    assert Delivery.objects.get().contact_id == str(person.pk)
    decided = {"contactId": str(person.pk).upper(), "channel": "EMAIL", "category": "ALL"}
    assert api.call("POST", "/consent", {**decided, "status": "OPTED_OUT"}).status_code == 201
    assert ConsentEntry.objects.get().contact_id == str(person.pk)
    listed = api.call("GET", f"/messages?contactId={str(person.pk).upper()}").json()
    assert [each["messageId"] for each in listed["messages"]] == [sent]
    assert api.call("GET", f"/messages/{sent.upper()}").status_code == 200
    twice = api.send({**body, "to": [*body["to"], {"contactId": str(person.pk)}]})
    assert twice.json()["error"]["details"][0]["message"] == "the same contact twice"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("003D000000QkBEw", "003D000000QkBEwIAN"),
        ("003D000000QkBEwIAN", "003D000000QkBEwIAN"),
        ("customer1234567", "customer1234567"),
        ("42", "42"),
    ],
)
def test_an_id_of_salesforce_has_18_characters(text, stored):
    assert ids.record_id(text) == stored


@pytest.mark.parametrize("token", ["null", "undefined", "Null", " None ", "nil", "(null)", "NaN"])
@pytest.mark.parametrize("platform", ["ANDROID", "PLATFORM", "IOS", "WEB"])
def test_text_null_is_rejected_as_a_token(org, api, platform, token):
    person = factories.contact(org)
    body = {"contactId": str(person.pk), "platform": platform, "token": token}
    answer = api.call("POST", "/devices", body)
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["error"]["details"]] == ["token"]
    assert not Device.objects.exists()


def test_unencoded_plus_in_query_is_read_as_plus(org, api):
    email, phone = "ada+x@example.com", "+33612345678"
    for channel, address in (("EMAIL", email), ("SMS", phone)):
        api.call("POST", "/suppressions", {"channel": channel, "address": address})
        listed = api.call("GET", f"/suppressions?address={address}").json()["suppressions"]
        assert [each["address"] for each in listed] == [address]
        path = f"/suppressions?channel={channel}&address={address}"
        assert api.call("DELETE", path).status_code == 204
    sent = api.send(message(factories.contact(org))).json()["messageId"]
    query = "since=2026-01-01T00:00:00+02:00&until=2099-01-01T00:00:00+0000"
    listed = api.call("GET", f"/messages?{query}").json()["messages"]
    assert [each["messageId"] for each in listed] == [sent]


@pytest.mark.parametrize(
    ("channel", "given", "stored"),
    [
        ("SMS", ["41", "+1", "0044", " 49"], ["+41", "+1", "+44", "+49"]),
        ("EMAIL", ["Bücher.example", "x.example."], ["xn--bcher-kva.example", "x.example"]),
        ("PUSH", ["com.Example.app", " android", "Web"], ["com.Example.app", "ANDROID", "WEB"]),
    ],
)
def test_match_of_an_account_is_normalized(org, channel, given, stored):
    row = ProviderAccount(organization=org, channel=channel, match=given)
    row.clean()
    assert row.match == stored


@pytest.mark.parametrize(
    ("channel", "match"),
    [("SMS", "CH"), ("SMS", "0"), ("EMAIL", "a@b.example"), ("EMAIL", "+41"), ("EMAIL", "[::1]")],
)
def test_match_of_no_possible_address_is_rejected(org, channel, match):
    with pytest.raises(ValidationError) as refused:
        ProviderAccount(organization=org, channel=channel, match=[match]).clean()
    assert list(refused.value.message_dict) == ["match"]


def _defaults(schema):
    if isinstance(schema, dict):
        if "default" in schema:
            yield schema
        for each in schema.values():
            yield from _defaults(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _defaults(each)


def test_every_default_of_the_description_fits_its_schema():
    document = Client().get("/rme/v1/openapi.json").json()
    schemas = [schema for schema in _defaults(document) if not isinstance(schema["default"], dict)]
    wrong = []
    for schema in schemas:
        complete = {**schema, "components": document["components"]}
        if not jsonschema.Draft202012Validator(complete).is_valid(schema["default"]):
            wrong.append(schema)
    assert wrong == []
    assert len(schemas) > 5
