"""The contract's rules for consent, suppressions and tokens that no other file tests."""

import pytest
from django.test import Client

from messaging.models import ConsentEntry, Suppression
from rme.tenants.oauth import authentication
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db

SOURCES = ["API", "ADMIN", "PREFERENCE_PAGE", "ONE_CLICK", "SMS_KEYWORD", "IMPORT", "DOUBLE_OPT_IN"]
REASONS = ["HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"]


@pytest.mark.promise("consent-4", "consent-10")
@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_of_consent_may_state_any_source(api, org, source):
    given = {
        "contactId": str(factories.contact(org).pk),
        "channel": "ALL",
        "category": "ALL",
        "status": "OPTED_OUT",
        "source": source,
    }
    made = api.call("POST", "/consent", given)
    assert (made.status_code, made.json()["source"]) == (201, source)
    assert ConsentEntry.objects.get().source == source


@pytest.mark.promise("consent-4", "suppressions-3")
def test_the_sources_and_reasons_are_the_contracts():
    assert set(ConsentEntry.Source.values) == set(SOURCES)
    assert set(Suppression.Reason.values) == set(REASONS)


@pytest.mark.promise("gates-4", "suppressions-3")
@pytest.mark.parametrize("reason", REASONS)
def test_a_suppression_may_state_any_reason_and_bars_any_category(api, org, reason):
    person = factories.contact(org)
    given = {"channel": "EMAIL", "address": person.email, "reason": reason}
    made = api.call("POST", "/suppressions", given)
    assert (made.status_code, made.json()["reason"]) == (201, reason)
    refused = api.send(message(person))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SUPPRESSED")
    other = api.send(message(person, channel="SMS"))
    assert other.status_code == 202  # another channel's address


@pytest.mark.promise("consent-11")
def test_a_late_entry_does_not_change_the_present_state(api, org):
    person = factories.contact(org)
    entry = {
        "contactId": str(person.pk),
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "status": "OPTED_OUT",
        "occurredAt": "2026-02-01T00:00:00Z",
    }
    api.call("POST", "/consent", entry)
    late = {"status": "OPTED_IN", "occurredAt": "2026-01-01T00:00:00Z"}
    assert api.call("POST", "/consent", entry | late).status_code == 201
    assert ConsentEntry.objects.count() == 2
    assert api.send(message(person)).json()["error"]["code"] == "NO_CONSENT"


@pytest.mark.promise("tokens-3")
def test_ids_and_secrets_of_programs_are_letters_and_digits(api):
    assert all(
        text.isascii() and text.isalnum() for text in (api.application.client_id, api.secret)
    )


@pytest.mark.promise("tokens-17")
def test_a_token_is_cached_for_half_a_minute_at_most():
    assert authentication.CACHE_SECONDS == authentication._tokens.seconds == 30


@pytest.mark.promise("discovery-6")
def test_the_token_endpoint_is_described_without_a_token():
    described = Client().get("/.well-known/oauth-authorization-server")
    assert described.status_code == 200
    assert described.json()["revocation_endpoint"].endswith("/services/oauth2/revoke")
    assert described.json()["introspection_endpoint"].endswith("/services/oauth2/introspect")
