"""Any JSON in any field of a message, and any bytes in its place, are an answer."""

import hypothesis
import pytest
from hypothesis import strategies as st

from rme.tenants.models import Organization
from tests import factories
from tests.any_value import EFFORT, JSON
from tests.rest import Api, message

FIELDS = [
    "channel",
    "channels",
    "strategy",
    "fallbackAfter",
    "category",
    "to",
    "template",
    "content",
    "push",
    "context",
    "from",
    "schedule",
    "metadata",
    "idempotencyKey",
    "anything",
]


@pytest.mark.promise("calls-18")
@EFFORT
@hypothesis.given(name=st.sampled_from(FIELDS), value=JSON)
def test_any_value_in_any_field_is_stored_or_rejected_with_details(db, name, value):
    org, api = _world()
    body = message(factories.contact(org)) | {name: value}
    response = api.send(body)
    answer = response.json()
    assert response.status_code < 500, answer
    if response.status_code == 400:
        assert answer["error"]["details"], answer
    bulk = api.bulk([body, message(factories.contact(org))])
    assert bulk.status_code == 202
    assert bulk.json()["accepted"] >= 1


def _world():
    found = Organization.objects.filter(pk="acme").first()
    org = found or factories.organization()
    if found is None:
        factories.template(org)
    return org, Api(org)


@pytest.mark.promise("calls-18")
@EFFORT
@hypothesis.given(body=st.binary(max_size=200))
def test_any_bytes_are_an_answer(db, body):
    _, api = _world()
    for path in ("/messages", "/messages/bulk"):
        assert api.call("POST", path, body).status_code in (400, 202)
