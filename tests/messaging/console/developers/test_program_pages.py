"""The page of applications and keys."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from rme.core.cache import TtlCache
from rme.tenants.models import ApiKey, Application, Membership
from rme.tenants.oauth import api_keys, applications
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, token
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def developer(org):
    return person("dev", org, Membership.Role.DEVELOPER)


def test_programs_show_permissions_last_use_and_buttons(developer, org):
    api = Api(org, mode="TEST")
    row = api.application
    former = api.secret
    applications.rotate_secret(row, timedelta(days=1))
    token(row.client_id, former)
    key, _ = api_keys.issue(org, "bot", actions=["Confirm_Contact"], networks=["192.0.2.0/24"])
    gone, _ = api_keys.issue(org, "gone")
    api_keys.revoke(gone)
    Api(factories.organization("other"))
    text = developer.get(url("programs")).content.decode()
    parts = [
        "Sends every category", "Record consent", "nothing is delivered", row.client_id,
        "Confirm_Contact", "192.0.2.0/24", "All actions", "Everywhere", "Revoked", "last used",
        *(
            reverse(f"admin:tenants_{name}", args=[pk])
            for name, pk in (
                ("application_rotate", row.pk), ("application_end_former", row.pk),
                ("application_delete", row.pk), ("apikey_rotate", key.pk),
                ("apikey_revoke", key.pk),
            )
        ),
    ]  # fmt: skip
    assert [part for part in parts if part not in text] == []
    assert reverse("admin:tenants_apikey_revoke", args=[gone.pk]) not in text
    assert text.count("Client id") == 2  # the heading, and one application's cell
    ApiKey.objects.filter(pk=key.pk).update(expires_at=key.created_at - timedelta(minutes=1))
    assert "Expired" in developer.get(url("programs")).content.decode()


def test_the_page_asks_as_often_for_3_programs_as_for_1(developer, org):
    developer.get(url("programs"))  # the session keeps the organization
    counts = []
    user = factories.integration_user()
    for more in (1, 2):
        for _ in range(more):
            applications.create_application(org, "x", user, Application.Mode.LIVE)
            api_keys.issue(org, "x")
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            developer.get(url("programs"))
        counts.append(len(captured))
    assert counts == [11, 11]


def test_organization_without_programs_sees_links_to_the_forms(developer):
    text = developer.get(url("programs")).content.decode()
    assert ("No applications yet" in text, "No keys yet" in text) == (True, True)
    assert reverse("admin:tenants_application_add") in text
