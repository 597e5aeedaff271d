"""The token endpoint: both grants, every refusal with its whole body, and what is stored."""

import base64
import threading
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.contrib.auth.models import Group
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from oauth2_provider.models import AccessToken

from rme.core.cache import TtlCache
from rme.tenants import api_keys, applications
from rme.tenants.models import ApplicationKey
from tests import factories
from tests.rest import FORM, token
from tests.tenants.conftest import KEY, public_pem

pytestmark = pytest.mark.django_db

URL = "/services/oauth2/token"


def post(body, content_type=FORM, **headers):
    return Client().post(URL, body, content_type, headers=headers)


def basic(client_id, secret):
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


def refused(response, status, error, description=None):
    body = response.json()
    assert (response.status_code, body["error"]) == (status, error)
    if description:
        assert body["error_description"] == description
    assert response["Cache-Control"] == "no-store"


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
    }
    assert abs(int(body["issued_at"]) / 1000 - time.time()) < 10
    assert response["Cache-Control"] == "no-store"


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


@pytest.mark.parametrize("encoded", [False, True])
def test_basic_is_percent_decoded(program, encoded):
    client_id = (
        "".join(f"%{ord(c):02X}" for c in program.client_id) if encoded else program.client_id
    )
    response = post(
        "grant_type=client_credentials", Authorization=basic(client_id, quote(program.secret))
    )
    assert response.status_code == 200


def test_wrong_secret_and_unknown_client_answer_alike(program):
    wrong = token(program.client_id, "wrong")
    unknown = token("nobody", "wrong")
    for response in (wrong, unknown):
        assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
        assert "WWW-Authenticate" not in response


def test_www_authenticate_only_with_basic(program):
    response = post("grant_type=client_credentials", Authorization=basic(program.client_id, "x"))
    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Basic realm="rme"')


def test_differing_credentials_are_refused(program):
    response = post(
        urlencode({"grant_type": "client_credentials", "client_id": "other", "client_secret": "x"}),
        Authorization=basic(program.client_id, program.secret),
    )
    refused(response, 400, "invalid_request", "two differing credentials")


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
def test_what_cannot_be_read_is_refused(program, body, content_type, status, error):
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


def test_unknown_scope_is_refused(program):
    refused(token(program.client_id, program.secret, scope="admin"), 400, "invalid_scope")


def test_without_the_permission_set_no_token_is_issued(program):
    program.application.user.groups.clear()
    assert token(program.client_id, program.secret).json() == {"error": "invalid_client"}
    refused(program.exchange(program.assertion()), 400, "invalid_grant")


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


def test_looking_a_token_up_is_one_statement_then_none(program):
    from rme.core import clock
    from rme.tenants.authentication import caller_of

    given = token(program.client_id, program.secret).json()["access_token"]
    clock.now()
    for expected in (1, 0):
        with CaptureQueriesContext(connection) as captured:
            assert caller_of(given).organization.id == "acme"
        assert len(captured) == expected


def manage(path, program, given, secret=None):
    form = {
        "token": given,
        "client_id": program.client_id,
        "client_secret": secret or program.secret,
    }
    return Client().post(f"/services/oauth2/{path}", urlencode(form), FORM)


def test_revoke_and_introspect(program):
    given = token(program.client_id, program.secret).json()["access_token"]
    told = manage("introspect", program, given).json()
    assert told == {
        "active": True,
        "scope": "api",
        "client_id": program.client_id,
        "username": "integration",
        "token_type": "Bearer",
        "exp": told["exp"],
        "iat": told["iat"],
    }
    assert manage("revoke", program, given, secret="wrong").status_code == 401
    assert manage("revoke", program, given).status_code == 200
    assert manage("revoke", program, given).status_code == 200  # RFC 7009: again is no error
    assert manage("introspect", program, given).json() == {"active": False}


def test_a_stranger_learns_and_revokes_nothing(program):
    given = token(program.client_id, program.secret).json()["access_token"]
    other = factories.organization("other")
    stranger, secret = applications.create_application(other, "x", factories.integration_user("x"))
    foreign = type(program)(stranger, secret, program.audience)
    assert manage("introspect", foreign, given).json() == {"active": False}
    assert manage("revoke", foreign, given).status_code == 200
    assert manage("introspect", program, given).json()["active"] is True


def test_discovery(settings):
    described = Client().get("/.well-known/oauth-authorization-server").json()
    assert described["issuer"] == settings.BASE_URL
    assert described["token_endpoint"] == f"{settings.BASE_URL}/services/oauth2/token"
    assert described["grant_types_supported"] == [
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ]


# --- assertions -----------------------------------------------------------------------------------


def ahead(seconds, form=int):
    """Give a maker of a time that far ahead of the moment at which the test runs."""
    return lambda: form(int(time.time()) + seconds)


def made(changes):
    return {name: value() if callable(value) else value for name, value in changes.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"exp": ahead(300, str)},
        {"exp": ahead(300, lambda seconds: seconds * 1000)},
        {"exp": ahead(3600)},
        {"nbf": ahead(-5), "iat": ahead(0)},
    ],
)
def test_assertions_of_sloppy_clients_are_taken(program, changes):
    assert program.exchange(program.assertion(**made(changes))).status_code == 200


def test_audiences(program, settings):
    settings.JWT_AUDIENCES = ["https://login.salesforce.com"]
    base = settings.BASE_URL
    for number, audience in enumerate(
        [base, [base], f"{base}/services/oauth2/token", "https://login.salesforce.com"]
    ):
        response = program.exchange(program.assertion(aud=audience, jti=str(number)))
        assert response.status_code == 200, audience


@pytest.mark.parametrize(
    ("changes", "description"),
    [
        ({"iss": None}, "iss is missing"),
        ({"iss": "nobody"}, "the signature is not one of the application's keys'"),
        ({"sub": "somebody"}, "sub is not the application's integration user"),
        ({"sub": None}, "sub is not the application's integration user"),
        ({"aud": "https://elsewhere.example"}, "aud is not this deployment"),
        ({"aud": None}, "aud is not this deployment"),
        ({"exp": ahead(-61)}, "the assertion has expired"),
        ({"exp": ahead(3800)}, "exp is more than an hour ahead"),
        ({"exp": None}, "a time is missing or is not a number"),
        ({"exp": "soon"}, "a time is missing or is not a number"),
        ({"exp": True}, "a time is missing or is not a number"),
        ({"nbf": ahead(300)}, "nbf is in the future"),
        ({"iat": ahead(300)}, "iat is in the future"),
    ],
)
def test_assertions_with_wrong_claims_are_refused(program, changes, description):
    response = program.exchange(program.assertion(**made(changes)))
    refused(response, 400, "invalid_grant", description)


@pytest.mark.parametrize(
    ("headers", "description"),
    [
        ({"typ": "at+jwt"}, "the type is not JWT"),
        ({"jku": "https://x.example"}, "the header names a key or an extension"),
        ({"x5u": "https://x.example"}, "the header names a key or an extension"),
        ({"jwk": {"kty": "oct"}}, "the header names a key or an extension"),
    ],
)
def test_assertions_with_forbidden_headers_are_refused(program, headers, description):
    refused(program.exchange(program.assertion(headers=headers)), 400, "invalid_grant", description)


def test_assertions_with_other_keys_and_algorithms_are_refused(program):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    wrong = "the signature is not one of the application's keys'"
    refused(program.exchange(program.assertion(key=other)), 400, "invalid_grant", wrong)
    algorithms = "the algorithm must be one of RS256, PS256, ES256, EdDSA"
    none = jwt.encode(program.claims(), None, algorithm="none")
    refused(program.exchange(none), 400, "invalid_grant", algorithms)
    hmac = jwt.encode(program.claims(), "k" * 32, algorithm="HS256")
    refused(program.exchange(hmac), 400, "invalid_grant", algorithms)
    refused(program.exchange("not.a.jwt"), 400, "invalid_grant", "the assertion is not a JWT")
    refused(program.exchange("x" * 20_000), 400, "invalid_grant", "the assertion is too long")
    refused(program.exchange(""), 400, "invalid_request", "assertion is required")


def certificate(key):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rme")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("form", ["pem", "jwk", "jwks", "certificate"])
def test_keys_of_every_kind_and_form(program, algorithm, form):
    keys = {"ES256": ec.generate_private_key(ec.SECP256R1()), "EdDSA": None}
    key = keys.get(algorithm, KEY) or ed25519.Ed25519PrivateKey.generate()
    if form == "certificate" and algorithm == "EdDSA":
        form = "pem"  # the self-signing above is for SHA-256 signatures
    makers = {"RS256": jwt.algorithms.RSAAlgorithm, "PS256": jwt.algorithms.RSAAlgorithm}
    makers |= {"ES256": jwt.algorithms.ECAlgorithm, "EdDSA": jwt.algorithms.OKPAlgorithm}
    jwk = makers[algorithm].to_jwk(key.public_key())
    material = {
        "pem": public_pem(key),
        "jwk": jwk,
        "jwks": f'{{"keys": [{jwk}]}}',
        "certificate": "",
    }[form] or certificate(key)
    ApplicationKey.objects.all().delete()
    ApplicationKey.objects.create(application=program.application, name="new", material=material)
    assert program.exchange(program.assertion(key=key, algorithm=algorithm)).status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("changes", [{}, {"jti": "once"}])
def test_an_assertion_is_taken_once(program, changes):
    assertion = program.assertion(**changes)
    statuses = []

    def call():
        statuses.append(program.exchange(assertion).status_code)
        connections.close_all()

    threads = [threading.Thread(target=call) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [400] * 49


# --- API keys -------------------------------------------------------------------------------------


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
