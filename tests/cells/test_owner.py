"""What a cell tells the router about its organizations."""

import json
from uuid import uuid4

import pytest
from django.utils import timezone
from oauth2_provider.models import AccessToken

from messaging.models import ProviderAccount
from rme.cells import signatures
from rme.tenants.models import Invitation, Placement, User
from rme.tenants.oauth import api_keys
from tests import factories
from tests.tenants.access.scene import member

pytestmark = pytest.mark.django_db
SECRET, PATH = "s" * 32, "/cell/owner"


@pytest.fixture(autouse=True)
def cell(settings):
    settings.CELL, settings.CELL_SECRET = "eu", SECRET
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:2"}


def ask(client, body, authorization=None, **headers):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    header = (
        signatures.sign(SECRET, f"POST {PATH}", text) if authorization is None else authorization
    )
    return client.post(PATH, text, "application/json", headers={"Authorization": header, **headers})


def owner(client, kind, value):
    answer = ask(client, {"kind": kind, "value": value})
    assert answer.status_code == 200, answer.content
    return answer.json()["organization"], answer.json()["cell"]


def test_each_kind_of_key_identifies_its_organization(client, django_assert_num_queries):
    org = factories.organization()
    user = factories.integration_user()
    application = factories.application(org, user)
    token = AccessToken.objects.create(
        user=user, application=application, token="t", scope="api", expires=timezone.now()
    )
    key, _ = api_keys.issue(org, "key")
    account = ProviderAccount.objects.create(
        organization=org, channel="EMAIL", kind="simulator", public_id="account-1"
    )
    invitation = Invitation(organization=org, email="a@example.org", role="OWNER")
    invitation.digest, invitation.expires_at = "d" * 64, timezone.now()
    invitation.save()
    keys = {
        "token": token.token_checksum,
        "client": application.client_id,
        "api_key": key.public_id,
        "organization": org.pk,
        "provider_account": account.public_id,
        "invitation": invitation.digest,
    }
    for kind, value in keys.items():
        with django_assert_num_queries(2):  # the key, and the placements
            assert owner(client, kind, value) == (org.pk, "eu"), kind
        assert owner(client, kind, "unknown") == ("", ""), kind
    assert owner(client, "delivery", str(uuid4())) == ("", "")


def test_active_people_are_found_by_name_and_by_address(client):
    user = member(factories.organization(), name="olga", email="Olga@example.org")
    for named in ("olga", "olga@EXAMPLE.org"):
        assert owner(client, "person", named) == ("", "eu")
    User.objects.filter(pk=user.pk).update(is_active=False)
    for named in ("olga", "olga@example.org", "nobody"):
        assert owner(client, "person", named) == ("", "")


@pytest.mark.parametrize(
    ("phase", "served_by"),
    [("LEAVING", "eu"), ("PAUSED", "eu"), ("MOVED", "us"), ("ARRIVING", "us")],
)
def test_an_organization_is_where_it_is_served(client, phase, served_by):
    org = factories.organization()
    Placement.objects.create(organization_id=org.pk, phase=phase, cell="us")
    assert owner(client, "organization", org.pk) == (org.pk, served_by)
    org.delete()
    assert owner(client, "organization", "acme") == ("acme", served_by)


def test_unsigned_questions_are_answered_with_not_found(client, settings):
    question = {"kind": "organization", "value": factories.organization().pk}
    text = json.dumps(question).encode()
    other = signatures.sign("t" * 32, f"POST {PATH}", text)
    late = signatures.sign(SECRET, f"POST {PATH}", text, 1_700_000_000)
    for header in ("", "Bearer x", other, late, signatures.sign(SECRET, f"GET {PATH}", text)):
        assert ask(client, question, header).status_code == 404
    assert ask(client, {**question, "value": "x" * 5000}).status_code == 413
    settings.CELL_SECRET = ""  # a deployment that is the only cell
    unsigned = signatures.sign("", f"POST {PATH}", text)
    assert ask(client, question, unsigned).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        {"kind": "password", "value": "x"},
        {"kind": "token", "value": 1},
        {"kind": ["token"], "value": "x"},
        {"kind": "token", "value": "\0"},
        {"kind": "delivery", "value": "x"},
    ],
)
def test_malformed_question_is_rejected(client, body):
    assert ask(client, body).status_code == 400


def test_question_is_accepted_by_any_host_name(client):
    answer = ask(client, {"kind": "organization", "value": "x"}, host="10.0.0.1:8000")
    assert answer.status_code == 200, answer.content
