"""Keys of the bot API."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.tenants import api_keys
from rme.tenants.models import ApiKey
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def issued():
    return api_keys.issue(factories.organization(), "bot", actions=["Confirm_Contact"])


def test_only_the_digest_is_kept(issued):
    key, text = issued
    prefix, public_id, secret = text.split("_", 2)
    assert (prefix, public_id, len(secret)) == ("rme", key.public_id, 43)
    with connection.cursor() as cursor:
        cursor.execute("SELECT k::text FROM tenants_apikey k")
        assert secret not in cursor.fetchone()[0]


def test_restrictions_are_kept(issued):
    key, text = issued
    found = api_keys.verify(text, "acme")
    assert (found, found.actions) == (key, ["Confirm_Contact"])


@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": datetime.now(UTC) - timedelta(seconds=1)},
        {"revoked_at": datetime.now(UTC)},
    ],
)
def test_a_dead_key_is_refused(issued, changes):
    ApiKey.objects.update(**changes)
    assert api_keys.verify(issued[1], "acme") is None


def test_a_key_that_expires_later_is_accepted(issued):
    ApiKey.objects.update(expires_at=datetime.now(UTC) + timedelta(minutes=1))
    assert api_keys.verify(issued[1], "acme") == issued[0]


def test_a_disabled_organizations_key_is_refused(issued):
    key, text = issued
    key.organization.is_active = False
    key.organization.save()
    assert api_keys.verify(text, "acme") is None


@pytest.mark.parametrize("organization", ["", "other", "ACME", "acme\0", "\ud800"])
def test_another_organization_is_refused(issued, organization):
    assert api_keys.verify(issued[1], organization) is None


@pytest.mark.parametrize(
    "text", ["", "rme", "rme__", "rme_\0_x", "rme_a_\ud800", "_" * 9, "rme_" + "a" * 9000]
)
def test_what_is_no_key_is_refused(issued, text):
    assert api_keys.verify(text, "acme") is None


def test_a_look_up_is_one_statement(issued):
    for text in (issued[1], issued[1] + "x"):
        with CaptureQueriesContext(connection) as captured:
            api_keys.verify(text, "acme")
        assert len(captured) == 1
