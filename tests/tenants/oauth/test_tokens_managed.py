"""Revoking and introspecting tokens."""

import threading
from urllib.parse import urlencode

import pytest
from django.db import connections, transaction
from django.test import Client
from oauth2_provider.models import AccessToken

from rme.core import errors
from rme.core.cache import TtlCache
from rme.tenants import applications, authentication
from rme.tenants.oauth import clients, tokens
from tests import factories
from tests.rest import FORM, token

pytestmark = pytest.mark.django_db


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


def test_a_new_secret_revokes_the_tokens_of_the_old_one(program):
    by_secret = token(program.client_id, program.secret).json()["access_token"]
    by_key = program.exchange(program.assertion()).json()["access_token"]
    assert authentication.caller_of(by_secret) == authentication.caller_of(by_key)
    applications.rotate_secret(program.application)
    TtlCache.clear_all()  # what a process knows for thirty seconds
    for each in (by_secret, by_key):
        with pytest.raises(errors.Unauthorized) as refused:
            authentication.caller_of(each)
        assert str(refused.value) == "The token is unknown or was revoked."
    assert authentication.CACHE_SECONDS == 30


def test_credentials_that_were_changed_while_they_were_checked_get_no_token(program):
    client = clients.find(program.client_id)
    applications.rotate_secret(program.application)
    assert not tokens.store(tokens.new(), client, scope="api", seconds=60)
    assert not AccessToken.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_revokes_waits_for_a_token_that_is_being_stored(program):
    client = clients.find(program.client_id)
    token = tokens.new()
    with transaction.atomic():
        assert tokens.store(token, client, scope="api", seconds=60)
        rotation = threading.Thread(target=rotate, args=[program.application])
        rotation.start()
        rotation.join(0.5)
        assert rotation.is_alive()
    rotation.join(20)
    assert not AccessToken.objects.exists()


def rotate(application):
    try:
        applications.rotate_secret(application)
    finally:
        connections.close_all()
