"""Real clients get tokens and call the API."""

import time
from datetime import timedelta

import pytest
import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import AssertionSession, OAuth2Session
from oauthlib.oauth2 import BackendApplicationClient
from requests.adapters import HTTPAdapter
from requests_oauthlib import OAuth2Session as RequestsOAuth2Session
from simple_salesforce import SalesforceLogin

from rme.tenants.oauth import applications
from tests.tenants.conftest import KEY, private_pem

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def live(live_server, program, settings):
    settings.BASE_URL = program.audience = live_server.url
    settings.JWT_AUDIENCES = ["https://login.salesforce.com"]
    return live_server.url


def call(base, session):
    response = session.get(f"{base}/rme/v1/messages")
    assert (response.status_code, response.json()) == (200, {"messages": [], "nextCursor": None})


@pytest.mark.promise("tokens-13")
@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_authlib_client_credentials(live, program, method):
    session = OAuth2Session(program.client_id, program.secret, token_endpoint_auth_method=method)
    session.fetch_token(f"{live}/services/oauth2/token", grant_type="client_credentials")
    call(live, session)


@pytest.mark.promise("tokens-24")
def test_authlib_keeps_using_the_old_secret_until_it_ends(live, program):
    endpoint = f"{live}/services/oauth2/token"
    old = OAuth2Session(program.client_id, program.secret, token_endpoint=endpoint)
    old.fetch_token(endpoint, grant_type="client_credentials")
    fresh = applications.rotate_secret(program.application, timedelta(hours=24))
    call(live, old)
    for secret in (program.secret, fresh):
        session = OAuth2Session(program.client_id, secret, token_endpoint=endpoint)
        session.fetch_token(endpoint, grant_type="client_credentials")
        call(live, session)
    applications.end_former_secret(program.application)
    with pytest.raises(OAuthError, match="invalid_client"):
        old.fetch_token(endpoint, grant_type="client_credentials")


@pytest.mark.promise("tokens-13")
def test_authlib_assertion(live, program):
    endpoint = f"{live}/services/oauth2/token"
    session = AssertionSession(
        token_endpoint=endpoint,
        issuer=program.client_id,
        subject=program.application.user.username,
        audience=endpoint,
        grant_type=AssertionSession.JWT_BEARER_GRANT_TYPE,
        header={"alg": "RS256"},
        key=private_pem(KEY),
    )
    call(live, session)


@pytest.mark.promise("tokens-13")
def test_requests_oauthlib(live, program, monkeypatch):
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    session = RequestsOAuth2Session(client=BackendApplicationClient(program.client_id))
    session.fetch_token(f"{live}/services/oauth2/token", client_secret=program.secret)
    call(live, session)


class ToLoopback(HTTPAdapter):
    """Lead a client that only knows https://….salesforce.com to the server of the test."""

    def __init__(self, base):
        super().__init__()
        self.base = base

    def send(self, request, **kwargs):
        request.url = self.base + request.path_url
        return super().send(request, **kwargs)


def leading_to(base):
    session = requests.Session()
    session.mount("https://", ToLoopback(base))
    return session


@pytest.mark.promise("tokens-13")
def test_simple_salesforce_jwt_login(live, program):
    token, instance = SalesforceLogin(
        username=program.application.user.username,
        consumer_key=program.client_id,
        privatekey=private_pem(KEY),
        session=leading_to(live),
    )
    call(live, bearing(token))
    assert instance == live.removeprefix("http://")


@pytest.mark.promise("tokens-13")
def test_simple_salesforce_client_credentials_login(live, program):
    token, _ = SalesforceLogin(
        consumer_key=program.client_id,
        consumer_secret=program.secret,
        domain="rme.my",
        session=leading_to(live),
    )
    call(live, bearing(token))


def bearing(token):
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    return session


@pytest.mark.promise("tokens-12")
def test_millisecond_exp_over_the_wire(live, program):
    answer = requests.post(
        f"{live}/services/oauth2/token",
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": program.assertion(exp=int(time.time() * 1000) + 180_000),
        },
        timeout=5,
    )
    assert answer.status_code == 200
