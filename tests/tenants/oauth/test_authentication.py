"""From a bearer token to its organization, and what is said when there is no way."""

import time

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from rme.core.errors import Unauthorized
from rme.tenants import organizations
from rme.tenants.models import INTEGRATION_GROUP, Application
from rme.tenants.oauth import authentication, clients, tokens
from rme.tenants.oauth.authentication import Caller, caller_of
from tests.rest import REQUEST_ID, error

pytestmark = pytest.mark.django_db

REALM = 'Bearer realm="rme"'


def invalid(text):
    return f'{REALM}, error="invalid_token", error_description="{text}"'


def make(program, *, seconds=3600, scope="api"):
    token = tokens.new()
    tokens.store(token, clients.find(program.client_id), scope=scope, seconds=seconds)
    return token


def call(authorization=None, path="/rme/v1/messages"):
    headers = {"X-Request-Id": REQUEST_ID}
    if authorization is not None:
        headers["Authorization"] = authorization
    return Client().get(path, headers=headers)


@pytest.mark.promise("calls-1")
def test_caller_is_that_of_the_token(program):
    application = program.application
    assert caller_of(make(program)) == Caller(
        organization=organizations.get("acme"),
        application_id=application.pk,
        user_id=application.user_id,
        test=False,
    )
    Application.objects.update(mode="TEST")
    assert caller_of(make(program)).test is True


@pytest.mark.promise("errors-4")
@pytest.mark.parametrize(
    ("header", "challenge", "message"),
    [
        (None, REALM, "A valid access token is required."),
        ("", REALM, "A valid access token is required."),
        ("Bearer", REALM, "A valid access token is required."),
        ("Bearer ", REALM, "A valid access token is required."),
        ("Basic YTpi", REALM, "A valid access token is required."),
        ("Token abc", REALM, "A valid access token is required."),
        ("Bearer abc", invalid(text := "The token is unknown or was revoked."), text),
        ("bearer abc", invalid(text), text),
        ("Bearer a b", invalid(bad := "The token is malformed."), bad),
        ("Bearer abc,Bearer abc", invalid(bad), bad),  # two headers, as WSGI joins them
        ("Bearer \xff\x80", invalid(bad), bad),
        ('Bearer "abc"', invalid(bad), bad),
        ("Bearer " + "x" * 8000, invalid(text), text),
    ],
)
def test_malformed_token_is_rejected(header, challenge, message):
    response = call(header)
    assert (response.status_code, response["WWW-Authenticate"]) == (401, challenge)
    assert response.json() == error("UNAUTHORIZED", message)


def test_a_token_in_the_query_is_not_read(program):
    response = call(path=f"/rme/v1/messages?access_token={make(program)}")
    assert (response.status_code, response["WWW-Authenticate"]) == (401, REALM)


def refused(token, challenge):
    with pytest.raises(Unauthorized) as raised:
        caller_of(token)
    assert raised.value.headers == {"WWW-Authenticate": challenge}


@pytest.mark.promise("errors-4")
def test_a_token_without_the_scope_is_refused(program):
    description = "The token lacks the scope api."
    refused(
        make(program, scope="other"),
        f'{REALM}, error="insufficient_scope", error_description="{description}", scope="api"',
    )


@pytest.mark.promise("errors-5")
def test_disabled_part_is_named_and_access_returns_once_it_is_enabled(program):
    token, user = make(program), program.application.user
    organization, group = program.application.organization, Group.objects.get()
    user.groups.clear()
    refused(token, invalid(f"The integration user lacks the permission set {INTEGRATION_GROUP}."))
    user.is_active = False
    user.save()
    refused(token, invalid("The integration user is disabled."))
    organization.is_active = False
    organization.save()
    refused(token, invalid("The organization is disabled."))
    organization.is_active = user.is_active = True
    organization.save()
    user.save()
    user.groups.add(group)
    assert caller_of(token).organization.id == "acme"


def test_the_cache_never_outlives_the_token(program):
    token = make(program, seconds=1)
    caller_of(token)
    time.sleep(1.05)
    with CaptureQueriesContext(connection) as captured:
        refused(token, invalid("The token has expired."))
    assert len(captured) == 0


def test_an_unknown_token_is_not_remembered(program):
    token = tokens.new()
    refused(token, invalid("The token is unknown or was revoked."))
    tokens.store(token, clients.find(program.client_id), scope="api", seconds=60)
    assert caller_of(token).organization.id == "acme"


@pytest.mark.promise("errors-5")
def test_a_revoked_token_is_forgotten_here_at_once(program):
    token = make(program)
    caller_of(token)
    form = {
        "token": token,
        "client_id": program.client_id,
        "client_secret": program.secret,
    }
    assert Client().post("/services/oauth2/revoke", form).status_code == 400  # multipart
    assert caller_of(token)
    body = "&".join(f"{name}={value}" for name, value in form.items())
    answer = Client().post("/services/oauth2/revoke", body, "application/x-www-form-urlencoded")
    assert (answer.status_code, answer.content) == (200, b"")
    refused(token, invalid("The token is unknown or was revoked."))


def test_a_look_up_is_one_statement_even_with_cold_caches(program):
    token = make(program)
    authentication._tokens.clear()
    for expected in (1, 0):
        with CaptureQueriesContext(connection) as captured:
            caller_of(token)
        assert len(captured) == expected


def test_sweep_deletes_expired_tokens(program):
    kept, gone = make(program), make(program, seconds=-1)
    assert tokens.purge() == 1
    assert caller_of(kept)
    refused(gone, invalid("The token is unknown or was revoked."))
