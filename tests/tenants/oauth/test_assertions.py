"""The token endpoint's JWT bearer grant: keys, claims, and every refusal."""

import time
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from rme.tenants.models import ApplicationKey
from tests.tenants.conftest import KEY, public_pem
from tests.tenants.oauth.test_tokens import refused
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def ahead(seconds, form=int):
    """Return a maker of a time that far ahead of the moment at which the test runs."""
    return lambda: form(int(time.time()) + seconds)


def made(changes):
    return {name: value() if callable(value) else value for name, value in changes.items()}


@pytest.mark.promise("tokens-9", "tokens-12")
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
def test_assertions_of_sloppy_clients_are_accepted(program, changes):
    assert program.exchange(program.assertion(**made(changes))).status_code == 200


@pytest.mark.promise("tokens-8")
def test_every_configured_audience_is_accepted(program, settings):
    settings.JWT_AUDIENCES = ["https://login.salesforce.com"]
    base = settings.BASE_URL
    for number, audience in enumerate(
        [base, [base], f"{base}/services/oauth2/token", "https://login.salesforce.com"]
    ):
        response = program.exchange(program.assertion(aud=audience, jti=str(number)))
        assert response.status_code == 200, audience


@pytest.mark.promise("tokens-7", "tokens-9")
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


@pytest.mark.promise("tokens-11")
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


@pytest.mark.promise("tokens-11")
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


@pytest.mark.promise("tokens-5")
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


@pytest.mark.promise("tokens-10")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("changes", [{}, {"jti": "once"}])
def test_assertion_is_accepted_once(program, changes):
    assertion = program.assertion(**changes)
    statuses = at_once(lambda: program.exchange(assertion).status_code, 50)
    assert sorted(statuses) == [200] + [400] * 49
