"""Keys of the bot API."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.tenants import organizations
from rme.tenants.models import ApiKey
from rme.tenants.oauth import api_keys
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def issued():
    return api_keys.issue(factories.organization(), "bot", actions=["Confirm_Contact"])


@pytest.mark.promise("tokens-21", "keys-7")
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
    assert (found.id, found.public_id) == (key.pk, key.public_id)
    assert (found.actions, found.networks) == (("Confirm_Contact",), ())
    assert found.organization == organizations.get("acme")
    assert (found.allows("Confirm_Contact"), found.allows("Confirm_Case")) == (True, False)


@pytest.mark.promise("keys-3")
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


def test_unexpired_key_is_accepted(issued):
    ApiKey.objects.update(expires_at=datetime.now(UTC) + timedelta(minutes=1))
    assert api_keys.verify(issued[1], "acme").id == issued[0].pk


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
def test_malformed_key_is_rejected(issued, text):
    assert api_keys.verify(text, "acme") is None


@pytest.mark.promise("keys-8")
def test_look_up_is_one_statement(issued):
    for text in (issued[1], issued[1] + "x"):
        with CaptureQueriesContext(connection) as captured:
            api_keys.verify(text, "acme")
        assert len(captured) == 1


@pytest.mark.promise("keys-5")
@pytest.mark.parametrize(
    ("networks", "address", "accepted"),
    [
        ([], "nonsense", True),
        (["192.0.2.0/24", "2001:db8::/32"], "192.0.2.7", True),
        (["192.0.2.0/24", "2001:db8::/32"], "2001:db8::1", True),
        (["192.0.2.0/24"], "::ffff:192.0.2.7", True),
        (["192.0.2.0/24"], "192.0.3.7", False),
        (["192.0.2.0/24"], "nonsense", False),
        (["nonsense"], "192.0.2.7", False),
    ],
)
def test_key_is_accepted_only_from_its_networks(issued, networks, address, accepted):
    ApiKey.objects.update(networks=networks)
    assert bool(api_keys.verify(issued[1], "acme", address)) is accepted


@pytest.mark.promise("keys-2")
@pytest.mark.parametrize("expires_in", [None, timedelta(days=1), timedelta(days=90)])
def test_rotating_creates_an_equal_key_and_expires_the_old_one(issued, expires_in):
    key, text = issued
    now = datetime.now(UTC)
    ApiKey.objects.update(networks=["192.0.2.0/24"], expires_at=expires_in and now + expires_in)
    key.refresh_from_db()
    made, fresh = api_keys.rotate(key)
    assert made.pk != key.pk
    old, new = api_keys.verify(text, "acme"), api_keys.verify(fresh, "acme")
    assert (new.actions, new.networks) == (old.actions, old.networks)
    key.refresh_from_db()
    wanted = now + min(expires_in or api_keys.OVERLAP, api_keys.OVERLAP)
    assert abs(key.expires_at - wanted) < timedelta(minutes=1)
    assert ApiKey.objects.get(pk=made.pk).expires_at is None


@pytest.mark.promise("keys-3")
def test_a_revoked_key_ends_at_once(issued):
    api_keys.revoke(issued[0])
    assert api_keys.verify(issued[1], "acme") is None
