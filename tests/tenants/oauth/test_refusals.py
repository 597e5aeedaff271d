"""Token requests that are wrong in unusual ways: a clean refusal, with its whole body."""

import base64
import json
import time
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.hashes import SHA256
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rest import FORM, basic, token
from tests.tenants.conftest import GRANT, KEY

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

URL = "/services/oauth2/token"
NOT_A_JWT = "the assertion is not a JWT"
NO_TIME = "a time is missing or is not a number"
ALGORITHMS = "the algorithm must be one of RS256, PS256, ES256, EdDSA"
TWO = {"error": "invalid_request", "error_description": "two differing credentials"}


def encoded(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def signed(header, claims):
    """Sign whatever it is, as no library would."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(KEY.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


def refused(response, description, error="invalid_grant", status=400):
    body = {"error": error, "error_description": description}
    assert (response.status_code, response.json()) == (status, body)
    assert response["Content-Type"] == "application/json"
    assert (response["Cache-Control"], response["Pragma"]) == ("no-store", "no-cache")
    assert "WWW-Authenticate" not in response


@pytest.mark.promise("tokens-11")
@pytest.mark.parametrize(
    ("header", "description"),
    [
        ({"alg": ["RS256"]}, ALGORITHMS),
        ({"alg": None}, ALGORITHMS),
        ({"alg": {}}, ALGORITHMS),
        ({}, ALGORITHMS),
        ({"alg": "rs256"}, ALGORITHMS),
        ({"alg": "RS512"}, ALGORITHMS),
        ({"alg": "HS256"}, ALGORITHMS),
        ({"alg": "none"}, ALGORITHMS),
        ({"alg": "RS256", "kid": 5}, NOT_A_JWT),
        ({"alg": "RS256", "crit": ["exp"]}, NOT_A_JWT),
        ({"alg": "RS256", "x5c": ["AA"]}, "the header names a key or an extension"),
        ({"alg": "RS256", "typ": None}, "the type is not JWT"),
        ({"alg": "RS256", "typ": "JOSE"}, "the type is not JWT"),
        ([], NOT_A_JWT),
        (b"\xff", NOT_A_JWT),
        (b"[" * 5000, NOT_A_JWT),
    ],
)
def test_headers(program, header, description):
    refused(program.exchange(signed(header, program.claims())), description)


@pytest.mark.promise("tokens-7")
@pytest.mark.parametrize(
    ("claims", "description"),
    [
        ({"aud": {}}, "aud is not this deployment"),
        ({"aud": [{}]}, "aud is not this deployment"),
        ({"aud": []}, "aud is not this deployment"),
        ({"aud": 5}, "aud is not this deployment"),
        ({"sub": ["integration"]}, "sub is not the application's integration user"),
        ({"iss": ["x"]}, "iss is missing"),
        ({"iss": "\0"}, "the signature is not one of the application's keys'"),
        ({"iss": "\ud800"}, "the signature is not one of the application's keys'"),
        ({"exp": "1e400"}, NO_TIME),
        ({"exp": float("nan")}, NO_TIME),
        ({"exp": float("inf")}, NO_TIME),
        ({"exp": []}, NO_TIME),
        ({"exp": -1}, "the assertion has expired"),
        ({"exp": 10**18}, NO_TIME),
        ({"nbf": None}, NO_TIME),
        ({"iat": "today"}, NO_TIME),
    ],
)
def test_claims(program, claims, description):
    assertion = signed({"alg": "RS256"}, {**program.claims(), **claims})
    refused(program.exchange(assertion), description)


@pytest.mark.parametrize("form", [{}, {"assertion": ""}])
def test_missing_assertion_is_rejected(program, form):
    body = urlencode({"grant_type": GRANT, **form})
    response = Client().post(URL, body, FORM)
    refused(response, "assertion is required", "invalid_request")


@pytest.mark.promise("tokens-8")
def test_assertion_with_another_audience_besides_ours_is_rejected(program):
    """Whoever else is meant could use the assertion here."""
    aud = [program.audience, "https://elsewhere.example"]
    refused(program.exchange(program.assertion(aud=aud)), "aud is not this deployment")


def test_an_oversized_number_in_the_claims_is_refused(program):
    claims = json.dumps(program.claims()).replace('"exp": ', '"exp": ' + "9" * 5000)
    refused(program.exchange(signed({"alg": "RS256"}, claims.encode())), NOT_A_JWT)


@pytest.mark.promise("tokens-10")
@pytest.mark.parametrize("changes", [{}, {"jti": ""}, {"jti": 5}, {"jti": "a"}])
def test_an_assertion_written_differently_is_still_the_same(program, changes):
    """The signature's padding is not signed: a replay may not differ by it."""
    assertion = program.assertion(**changes)
    assert program.exchange(assertion).status_code == 200
    padding_needed = "=" * (-len(assertion.rpartition(".")[2]) % 4)
    for again in (assertion, assertion + padding_needed):
        refused(program.exchange(again), "the assertion was used before")


def test_rejected_assertion_is_not_used_up(program):
    assertion = program.assertion(jti="kept")
    refused(program.exchange(assertion, client_id="other"), "iss is not the client")
    assert program.exchange(assertion, scope="admin").json()["error"] == "invalid_scope"
    assert program.exchange(assertion).status_code == 200


def test_the_same_jti_of_another_client_is_another(program):
    first = program.exchange(program.assertion(jti="1"))
    second = program.exchange(program.assertion(jti="1", exp=int(time.time()) + 200))
    assert (first.status_code, second.json()["error_description"]) == (
        200,
        "the assertion was used before",
    )


def test_credentials_sent_with_an_assertion_are_checked(program):
    def exchange(**fields):
        return program.exchange(program.assertion(jti=json.dumps(fields)), **fields)

    assert exchange(client_id=program.client_id).status_code == 200
    good = {"client_id": program.client_id, "client_secret": program.secret}
    assert exchange(**good).status_code == 200
    wrong = exchange(client_id=program.client_id, client_secret="wrong")
    assert (wrong.status_code, wrong.json()) == (401, {"error": "invalid_client"})


@pytest.mark.promise("tokens-20")
@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 200),
        ({"client_id": "ID"}, 200),
        ({"client_id": "ID", "client_secret": "SECRET"}, 200),
        ({"client_secret": "SECRET"}, 200),
        ({"client_id": "other"}, 400),
        ({"client_secret": "other"}, 400),
        ({"client_id": "ID", "client_secret": "other"}, 400),
    ],
)
def test_credentials_in_both_places_must_agree(program, form, status):
    real = {"ID": program.client_id, "SECRET": program.secret}
    body = {"grant_type": "client_credentials"}
    body |= {name: real.get(value, value) for name, value in form.items()}
    header = {"Authorization": basic(program.client_id, program.secret)}
    response = Client().post(URL, urlencode(body), FORM, headers=header)
    assert response.status_code == status
    if status == 400:
        assert response.json() == TWO


def test_credentials_in_the_address_are_refused(program):
    query = urlencode({"client_id": program.client_id, "client_secret": program.secret})
    refused(
        Client().post(f"{URL}?{query}", "grant_type=client_credentials", FORM),
        "parameters belong in the body, not in the address",
        "invalid_request",
    )


def test_unknown_parameters_are_ignored(program):
    """RFC 6749 §3.2; the library keeps its own state under some of these names."""
    names = ["client", "user", "scopes", "extra_credentials", "expires_in", "headers", "claims"]
    response = token(program.client_id, program.secret, **dict.fromkeys(names, "x"))
    assert response.status_code == 200
    assert (response.json()["scope"], response.json()["expires_in"]) == ("api", 3600)
    answer = program.exchange(program.assertion(), **dict.fromkeys(names, "x"))
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["token", "revoke", "introspect"])
@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options", "head"])
def test_other_methods_are_refused(path, method):
    response = getattr(Client(), method)(f"/services/oauth2/{path}")
    assert (response.status_code, response["Allow"]) == (405, "POST")
    if method != "head":
        body = {"error": "invalid_request", "error_description": "the method must be POST"}
        assert response.json() == body


def test_discovery_is_read_only():
    path = "/.well-known/oauth-authorization-server"
    assert Client().head(path).status_code == 200
    response = Client().post(path, "", FORM)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert response.json()["error"] == "invalid_request"


@pytest.mark.parametrize("path", ["revoke", "introspect"])
def test_a_token_must_be_named(program, path):
    form = {"client_id": program.client_id, "client_secret": program.secret}
    refused(
        Client().post(f"/services/oauth2/{path}", urlencode(form), FORM),
        "Missing token parameter.",
        "invalid_request",
    )


def test_sibling_application_can_introspect_but_not_revoke(program):
    from rme.tenants.oauth import applications

    sibling, secret = applications.create_application(
        program.application.organization, "sibling", program.application.user
    )
    kept = token(program.client_id, program.secret).json()["access_token"]
    form = {"token": kept, "client_id": sibling.client_id, "client_secret": secret}
    form["token_type_hint"] = "refresh_token"  # a wrong hint is only a hint
    body = urlencode(form)
    assert Client().post("/services/oauth2/revoke", body, FORM).status_code == 200
    assert Client().post("/services/oauth2/introspect", body, FORM).json()["active"] is True


def test_statements_of_an_assertion_are_few(program):
    token(program.client_id, program.secret)  # asks for the clock
    answers = []
    for jti in ("first", "second", "second"):
        with CaptureQueriesContext(connection) as captured:
            answer = program.exchange(program.assertion(jti=jti))
        answers.append((answer.status_code, len(captured)))
    # The application, its keys, the assertion taken, the new token; at first the key's use.
    assert answers == [(200, 5), (200, 4), (400, 3)]


@pytest.mark.promise("tokens-25")
def test_a_wrong_secret_and_an_unknown_client_cost_the_same(program):
    token(program.client_id, program.secret)
    counts = []
    for client_id in (program.client_id, "a" * 32):
        with CaptureQueriesContext(connection) as captured:
            token(client_id, "wrong")
        counts.append(len(captured))
    assert counts == [1, 1]


def test_an_internal_error_is_json_and_reveals_nothing(program):
    def fail(*_):
        raise RuntimeError("a bug of the driver")

    with connection.execute_wrapper(fail):
        response = token(program.client_id, program.secret)
    assert (response.status_code, response.json()) == (500, {"error": "server_error"})


FIELDS = st.sampled_from(
    ["grant_type", "assertion", "client_id", "client_secret", "scope", "token", "token_type_hint"]
)
VALUES = st.one_of(
    st.sampled_from(["client_credentials", GRANT, "api", "a.b.c", "..", "\0", "%", "\ud7ff"]),
    st.text(max_size=20),
)


@settings(
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    path=st.sampled_from(["token", "revoke", "introspect"]),
    body=st.one_of(
        st.binary(max_size=80),
        st.dictionaries(FIELDS, VALUES, max_size=5).map(lambda form: urlencode(form).encode()),
    ),
    authorization=st.one_of(
        st.none(),
        st.binary(max_size=30).map(lambda b: "Basic " + base64.b64encode(b).decode()),
        st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30),
    ),
)
def test_no_request_causes_a_server_error(program, path, body, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    response = Client().post(f"/services/oauth2/{path}", body, FORM, headers=headers)
    assert response.status_code in (400, 401)
    assert set(response.json()) <= {"error", "error_description"}
