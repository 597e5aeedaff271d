"""The token endpoint: client credentials, every refusal with its whole answer, and API keys."""

import time
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from oauth2_provider.models import AccessToken

from rme.core.cache import TtlCache
from rme.tenants.oauth import api_keys
from rme.tenants.oauth.permissions import ALL_PERMISSIONS
from tests import factories
from tests.rest import FORM, basic, token

pytestmark = pytest.mark.django_db

URL = "/services/oauth2/token"


def post(body, content_type=FORM, **headers):
    return Client().post(URL, body, content_type, headers=headers)


def refused(response, status, error, description=None):
    body = response.json()
    assert (response.status_code, body["error"]) == (status, error)
    if description:
        assert body["error_description"] == description
    assert response["Cache-Control"] == "no-store"


@pytest.mark.promise("tokens-1", "tokens-15", "tokens-18")
def test_client_credentials_answer(program, settings):
    response = token(program.client_id, program.secret)
    body = response.json()
    assert response.status_code == 200
    assert body == {
        "access_token": body["access_token"],
        "expires_in": 3600,
        "token_type": "Bearer",
        "scope": "api",
        "instance_url": settings.BASE_URL,
        "id": f"{settings.BASE_URL}/id/acme/{program.application.user_id}",
        "issued_at": body["issued_at"],
        "permissions": ["SEND:*", *ALL_PERMISSIONS],
    }
    assert abs(int(body["issued_at"]) / 1000 - time.time()) < 10
    assert response["Cache-Control"] == "no-store"


@pytest.mark.promise("tokens-21")
def test_secrets_are_kept_as_digests(program):
    given = token(program.client_id, program.secret).json()["access_token"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM oauth2_provider_accesstoken t")
        assert given not in cursor.fetchone()[0]
        cursor.execute("SELECT a::text FROM tenants_application a")
        assert program.secret not in cursor.fetchone()[0]


def test_statements_of_a_token_are_few(program):
    token(program.client_id, program.secret)
    with CaptureQueriesContext(connection) as captured:
        token(program.client_id, program.secret)
    assert len(captured) == 2  # the application, the new token


@pytest.mark.promise("tokens-2")
@pytest.mark.parametrize("encoded", [False, True])
def test_basic_is_percent_decoded(program, encoded):
    client_id = (
        "".join(f"%{ord(c):02X}" for c in program.client_id) if encoded else program.client_id
    )
    response = post(
        "grant_type=client_credentials", Authorization=basic(client_id, quote(program.secret))
    )
    assert response.status_code == 200


@pytest.mark.promise("tokens-19")
def test_wrong_secret_and_unknown_client_have_the_same_answer(program):
    wrong = token(program.client_id, "wrong")
    unknown = token("nobody", "wrong")
    for response in (wrong, unknown):
        assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
        assert "WWW-Authenticate" not in response


@pytest.mark.promise("tokens-19")
def test_www_authenticate_only_with_basic(program):
    response = post("grant_type=client_credentials", Authorization=basic(program.client_id, "x"))
    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Basic realm="rme"')


@pytest.mark.promise("tokens-20")
def test_differing_credentials_are_refused(program):
    response = post(
        urlencode({"grant_type": "client_credentials", "client_id": "other", "client_secret": "x"}),
        Authorization=basic(program.client_id, program.secret),
    )
    refused(response, 400, "invalid_request", "two differing credentials")


@pytest.mark.promise("tokens-19")
@pytest.mark.parametrize(
    ("body", "content_type", "status", "error"),
    [
        (b"", FORM, 400, "unsupported_grant_type"),
        (b"grant_type=password&username=a&password=b", FORM, 400, "unsupported_grant_type"),
        (b"grant_type=client_credentials&grant_type=x", FORM, 400, "invalid_request"),
        (b"grant_type=client_credentials", FORM, 401, "invalid_client"),
        (b"\xff\xfe", FORM, 400, "invalid_request"),
        (b"client_id=%00", FORM, 400, "invalid_request"),
        (b"client_id=%ff", FORM, 400, "invalid_request"),
        (b"&".join(b"a%d=1" % i for i in range(60)), FORM, 400, "invalid_request"),
        (b"a" * 70_000, FORM, 400, "invalid_request"),
        (b'{"grant_type": "client_credentials"}', "application/json", 400, "invalid_request"),
    ],
)
def test_unreadable_request_is_rejected(program, body, content_type, status, error):
    response = post(body, content_type)
    if error == "unsupported_grant_type" and body == b"":
        error = response.json()["error"]
        assert error in ("invalid_request", "unsupported_grant_type")
    refused(response, status, error)


@pytest.mark.parametrize("header", ["Basic ?", "Basic " + "x" * 9, "Basic /w==", "Basic eA=="])
def test_malformed_basic_is_refused(program, header):
    refused(post("grant_type=client_credentials", Authorization=header), 401, "invalid_client")


def test_get_is_refused(program):
    response = Client().get(URL)
    assert (response.status_code, response["Allow"]) == (405, "POST")


@pytest.mark.promise("tokens-15")
def test_unknown_scope_is_refused(program):
    refused(token(program.client_id, program.secret, scope="admin"), 400, "invalid_scope")


@pytest.mark.promise("tokens-16")
def test_without_the_permission_set_no_token_is_issued(program):
    program.application.user.groups.clear()
    assert token(program.client_id, program.secret).json() == {"error": "invalid_client"}
    refused(program.exchange(program.assertion()), 400, "invalid_grant")


@pytest.mark.promise("tokens-17")
@pytest.mark.parametrize("what", ["user", "organization", "permission"])
def test_tokens_stop_working_within_the_cache_time(program, what):
    given = token(program.client_id, program.secret).json()["access_token"]

    def call():
        return Client().get("/rme/v1/messages", headers={"Authorization": f"Bearer {given}"})

    assert call().status_code == 200
    user, organization = program.application.user, program.application.organization
    match what:
        case "user":
            user.is_active = False
            user.save()
        case "organization":
            organization.is_active = False
            organization.save()
        case "permission":
            user.groups.remove(Group.objects.get(name="MSG_Integration_User"))
    assert call().status_code == 200  # believed for half a minute
    TtlCache.clear_all()
    response = call()
    assert response.status_code == 401
    assert 'error="invalid_token"' in response["WWW-Authenticate"]


@pytest.mark.promise("errors-4")
def test_expired_and_narrow_tokens_are_refused(program):
    given = token(program.client_id, program.secret).json()["access_token"]
    header = {"Authorization": f"Bearer {given}"}
    AccessToken.objects.update(scope="other")
    response = Client().get("/rme/v1/messages", headers=header)
    assert 'error="insufficient_scope"' in response["WWW-Authenticate"]
    TtlCache.clear_all()
    AccessToken.objects.update(scope="api", expires=datetime.now(UTC) - timedelta(seconds=1))
    response = Client().get("/rme/v1/messages", headers=header)
    assert (response.status_code, response.json()["error"]["message"]) == (
        401,
        "The token has expired.",
    )


def test_token_look_up_is_one_statement_and_then_cached(program):
    from rme.core.db import clock
    from rme.tenants.oauth.authentication import caller_of

    given = token(program.client_id, program.secret).json()["access_token"]
    clock.now()
    for expected in (1, 0):
        with CaptureQueriesContext(connection) as captured:
            assert caller_of(given).organization.id == "acme"
        assert len(captured) == expected


@pytest.mark.promise("discovery-6")
def test_discovery(settings):
    described = Client().get("/.well-known/oauth-authorization-server").json()
    assert described["issuer"] == settings.BASE_URL
    assert described["token_endpoint"] == f"{settings.BASE_URL}/services/oauth2/token"
    assert described["grant_types_supported"] == [
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ]


def test_api_keys(db):
    org, other = factories.organization(), factories.organization("other")
    key, text = api_keys.issue(org, "bot")
    assert text.startswith(f"rme_{key.public_id}_")
    found = api_keys.verify(text, org.pk)
    assert found and (found.id, found.organization.id) == (key.pk, org.pk)
    for wrong in (text[:-1], text + "x", text.replace("rme_", "abc_"), "", "rme__", "rme_\0_x"):
        assert api_keys.verify(wrong, org.pk) is None
    assert api_keys.verify(text, other.pk) is None
    key.expires_at = datetime.now(UTC) - timedelta(seconds=1)
    key.save()
    assert api_keys.verify(text, org.pk) is None
