"""Passkeys: an answer counts once, and one that can't be read is a wrong one."""

import json

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.test import Client

from rme.core.redis.connection import redis_client
from rme.tenants.access.sessions import SessionStore
from tests.tenants.access.passkeys import ADD, LOGIN, Passkey
from tests.tenants.access.scene import browser, is_in, log_in, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def passkey(org):
    user, client = member(org), browser()
    log_in(client)
    found = Passkey(user)
    assert found.add(client).status_code == 302
    return found


def posted(client, credential, path=LOGIN):
    return client.post(path, {"credential": json.dumps(credential)})


def with_the_same_session(client: Client) -> Client:
    """Return a browser whose session holds the same, as another process has read it."""
    data = SessionStore(client.cookies["sessionid"].value).load()
    copy = SessionStore()
    copy.update(data)
    copy.save()
    other = browser()
    other.cookies["sessionid"] = copy.session_key
    return other


@pytest.mark.parametrize("away", [False, True], ids=["with Redis", "without Redis"])
def test_answer_of_a_passkey_counts_once_in_all_processes(passkey, away, settings, monkeypatch):
    if away:
        monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
        redis_client.cache_clear()
    first = browser()
    answer = passkey.answer(first)
    second = with_the_same_session(first)
    posted(first, answer)
    posted(second, answer)
    found = (is_in(first), is_in(second))
    monkeypatch.undo()
    redis_client.cache_clear()
    assert found == (True, False)
    posted(second, passkey.answer(second))
    assert is_in(second)


MALFORMED = {
    "no id": {"rawId": "YQ", "response": {}},
    "no answer": {"id": "YQ", "rawId": "YQ"},
    "a list": [],
    "a number": 5,
    "an answer of another type": {"id": "YQ", "rawId": "YQ", "response": "x"},
    "no base64": {"id": "a", "rawId": "a", "response": {"clientDataJSON": "e30"}},
    "an id that isn't ASCII": {"id": "ü", "rawId": "ü", "response": {}},
    "no handle": {"id": "YQ", "rawId": "YQ", "response": {"clientDataJSON": "e30"}},
    "a short attestation": {
        "id": "YQ", "rawId": "YQ", "type": "public-key",
        "response": {"clientDataJSON": "e30", "attestationObject": "m1K0W9c"},
    },
}  # fmt: skip


UNREADABLE = {"deep": "[" * 100_000, "a long number": "1" * 5000, "NUL": '{"id": "\\u0000"}'}


@pytest.mark.parametrize(
    "credential",
    [*map(json.dumps, MALFORMED.values()), *UNREADABLE.values()],
    ids=[*MALFORMED, *UNREADABLE],
)
def test_malformed_passkey_is_a_wrong_one(org, credential):
    cache.clear()  # the log-in page limits the answers from one address
    member(org)
    client, form = browser(), {"credential": credential}
    client.get(LOGIN, headers={"X-Requested-With": "XMLHttpRequest"})
    assert client.post(LOGIN, form).status_code == 302
    log_in(client)
    client.get(ADD)
    assert client.post(ADD, form).status_code == 200
    assert not Authenticator.objects.exists()
