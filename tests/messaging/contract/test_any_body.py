"""Any JSON in any field of the other calls with a body is an answer that names the field."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tests import factories
from tests.any_value import JSON
from tests.rest import Api

pytestmark = pytest.mark.django_db

CONSENT = {
    "contactId": "…",
    "channel": "EMAIL",
    "category": "MARKETING",
    "status": "OPTED_IN",
    "source": "API",
    "evidence": {"form": "sign-up"},
    "occurredAt": "2026-01-01T00:00:00Z",
    "entries": [],
    "anything": 1,
}
SUPPRESSION = {
    "channel": "EMAIL",
    "address": "ada@example.com",
    "contactId": "c1",
    "reason": "MANUAL",
    "note": "asked",
    "expiresAt": "2099-01-01T00:00:00Z",
    "entries": [],
    "anything": 1,
}
RENDER = {
    "language": "en_US",
    "channel": "EMAIL",
    "version": 1,
    "contactId": "c1",
    "context": {"variables": {}},
    "variables": {"note": "hello"},
    "anything": 1,
}
NEVER_GIVEN = {"entries", "anything"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/consent", CONSENT, 201),
        ("/suppressions", SUPPRESSION, 201),
        ("/templates/welcome/render", RENDER, 200),
    ],
)
def test_any_value_in_any_field_is_stored_or_rejected_with_details(org, path, body, status):
    api, person = Api(org), factories.contact(org)
    usual = {name: value for name, value in body.items() if name not in NEVER_GIVEN}
    if "contactId" in usual:
        usual["contactId"] = str(person.pk)
    if path == "/suppressions":
        del usual["contactId"]
    first = api.call("POST", path, usual)
    assert first.status_code == status, first.content

    @hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @hypothesis.given(name=st.sampled_from(sorted(body)), value=JSON)
    def check(name, value):
        response = api.call("POST", path, usual | {name: value})
        answer = response.json()
        assert response.status_code < 500, answer
        if response.status_code == 400:
            assert answer["error"]["details"], answer

    check()
