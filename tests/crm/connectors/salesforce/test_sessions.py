"""Salesforce's sessions: one log-in for many, and what is wrong with one."""

import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from rme.crm.connectors.base import PlatformAway, PlatformRefused
from tests.crm import remote
from tests.crm.connectors.errors_scene import find, make
from tests.fakes.salesforce import Refused


@pytest.mark.promise("salesforce-1", "salesforce-2")
def test_a_session_serves_many_connectors(server):
    for _ in range(3):
        find(remote.salesforce(server))
    assert server.logins == [
        {"grant_type": "client_credentials", "client_id": "app", "client_secret": "secret"}
    ]


@pytest.mark.promise("salesforce-9")
def test_ended_session_is_renewed_by_one_log_in(server):
    connector = remote.salesforce(server)
    find(connector)
    server.sessions.clear()
    made = make(connector)
    assert [row["Id"] for row in server.rows["Account"]] == [made]
    assert len(server.logins) == 2


@pytest.mark.promise("salesforce-9")
def test_session_that_is_never_accepted_fails_after_one_log_in(server):
    connector = remote.salesforce(server)
    server.refuse = [Refused(401, "INVALID_SESSION_ID") for _ in range(5)]
    with pytest.raises(PlatformRefused):
        find(connector)
    assert (len(server.logins), len(server.refuse)) == (2, 3)


@pytest.mark.promise("salesforce-2")
def test_threads_may_log_in_at_once(server):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: find(remote.salesforce(server)), range(16)))
    assert found == [[]] * 16
    assert len(server.logins) <= 8


def test_a_private_key_signs_an_assertion(server):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    audience = "https://test.salesforce.com"
    settings = {"private_key": pem, "username": "bot@acme.example", "audience": audience}
    find(remote.salesforce(server, **settings))
    (form,) = server.logins
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    claims = jwt.decode(form["assertion"], key.public_key(), ["RS256"], audience=audience)
    assert (claims["iss"], claims["sub"]) == ("app", "bot@acme.example")
    assert 0 < claims["exp"] - time.time() <= 180


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"client_secret": "wrong"}, PlatformRefused),
        ({"private_key": "no key"}, PlatformRefused),
        ({"address": "https://127.0.0.1:1"}, PlatformAway),
        ({"address": "file:///etc/passwd"}, PlatformAway),
        ({"address": ""}, PlatformAway),
    ],
    ids=["secret", "key", "nobody there", "scheme", "no address"],
)
def test_wrong_settings_raise_their_error(server, settings, expected):
    with pytest.raises(expected):
        find(remote.salesforce(server, **settings))


@pytest.mark.parametrize(
    "where",
    ["http://169.254.169.254/", "https://169.254.169.254", "https://", "javascript:1", None, 7],
    ids=["http", "metadata", "no host", "scheme", "null", "number"],
)
def test_log_in_cannot_redirect_to_another_host(server, where):
    given = server._log_in
    server._log_in = lambda form: (200, {**given(form)[1], "instance_url": where})
    with pytest.raises(PlatformAway):
        find(remote.salesforce(server))
