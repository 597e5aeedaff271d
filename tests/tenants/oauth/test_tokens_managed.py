"""Revoking and introspecting tokens."""

import threading
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connections, transaction
from django.db.models.functions import Now
from django.test import Client
from oauth2_provider.models import AccessToken

from rme.core import errors
from rme.core.cache import TtlCache
from rme.tenants.models import Application
from rme.tenants.oauth import applications, authentication, clients, tokens
from rme.tenants.oauth.permissions import ALL_PERMISSIONS
from tests import factories
from tests.rest import FORM, token
from tests.service import wait_for
from tests.threads import waiting

pytestmark = pytest.mark.django_db


def manage(path, program, given, secret=None):
    form = {
        "token": given,
        "client_id": program.client_id,
        "client_secret": secret or program.secret,
    }
    return Client().post(f"/services/oauth2/{path}", urlencode(form), FORM)


@pytest.mark.promise("tokens-4")
def test_revoke_and_introspect(program):
    given = token(program.client_id, program.secret).json()["access_token"]
    told = manage("introspect", program, given).json()
    assert told == {
        "active": True,
        "scope": "api",
        "permissions": ["SEND:*", *ALL_PERMISSIONS],
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


@pytest.mark.promise("tokens-4")
def test_stranger_cannot_introspect_or_revoke(program):
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


def test_credentials_changed_during_the_check_get_no_token(program):
    client = clients.find(program.client_id)
    applications.rotate_secret(program.application)
    assert not tokens.store(tokens.new(), client, scope="api", seconds=60)
    assert not AccessToken.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_revoking_waits_for_a_token_being_stored(program):
    client = clients.find(program.client_id)
    token = tokens.new()
    with transaction.atomic():
        assert tokens.store(token, client, scope="api", seconds=60)
        rotation = threading.Thread(target=rotate, args=[program.application])
        rotation.start()
        wait_for(lambda: waiting() == 1)
    rotation.join(20)
    assert not AccessToken.objects.exists()


def rotate(application):
    try:
        applications.rotate_secret(application)
    finally:
        connections.close_all()


def caller_by(secret, program):
    answer = token(program.client_id, secret)
    return answer.status_code, answer.json().get("expires_in")


@pytest.mark.promise("tokens-24")
def test_a_replaced_secret_is_accepted_for_a_time_and_its_tokens_end_with_it(program):
    before = token(program.client_id, program.secret).json()["access_token"]
    fresh = applications.rotate_secret(program.application, timedelta(minutes=30))
    (status, left), by_new = caller_by(program.secret, program), caller_by(fresh, program)
    assert (status, 1700 < left <= 1800, by_new) == (200, True, (200, 3600))
    assert authentication.caller_of(before)
    row = Application.objects.get()
    lives = sorted(AccessToken.objects.values_list("expires", flat=True))
    assert lives[1] == row.former_until  # of the token that was issued before
    assert lives[0] <= row.former_until < lives[2]
    with pytest.raises(applications.FormerSecretValid):
        applications.rotate_secret(program.application, timedelta(hours=1))
    Application.objects.update(former_until=Now())
    assert [caller_by(each, program)[0] for each in (program.secret, fresh)] == [401, 200]
    applications.delete_expired_secrets()
    assert Application.objects.get().former_secret == ""
    applications.rotate_secret(program.application, timedelta(hours=1))


def test_the_former_secret_can_be_ended_at_once_with_all_tokens(program):
    fresh = applications.rotate_secret(program.application, timedelta(days=7))
    given = token(program.client_id, fresh).json()["access_token"]
    applications.end_former_secret(program.application)
    TtlCache.clear_all()
    with pytest.raises(errors.Unauthorized):
        authentication.caller_of(given)
    assert [caller_by(each, program)[0] for each in (program.secret, fresh)] == [401, 200]


def test_a_new_secret_at_once_ends_the_former_one_too(program):
    second = applications.rotate_secret(program.application, timedelta(days=7))
    third = applications.rotate_secret(program.application)
    found = [caller_by(each, program)[0] for each in (program.secret, second, third)]
    assert found == [401, 401, 200]


def test_the_last_use_of_each_is_known_to_the_minute(program):
    def used():
        row = Application.objects.get()
        return [row.secret_used_at, row.former_used_at, row.key_used_at]

    assert used() == [None, None, None]
    assert token(program.client_id, "wrong").status_code == 401
    assert used() == [None, None, None]
    token(program.client_id, program.secret)
    (first, *_) = used()
    assert [first is not None, *used()[1:]] == [True, None, None]
    token(program.client_id, program.secret)
    assert used()[0] == first
    fresh = applications.rotate_secret(program.application, timedelta(days=1))
    assert used() == [None, first, None]
    Application.objects.update(former_used_at=first - timedelta(minutes=2))
    for secret in (program.secret, fresh):
        token(program.client_id, secret)
    program.exchange(program.assertion())
    assert all(each is not None and each >= first for each in used())


def test_token_being_issued_does_not_outlive_the_secret(program):
    client = clients.find(program.client_id)
    applications.rotate_secret(program.application, timedelta(minutes=5))
    assert not tokens.store(tokens.new(), client, scope="api", seconds=3600)
    client = clients.find(program.client_id)
    applications.end_former_secret(program.application)
    applications.rotate_secret(program.application, timedelta(hours=1))
    assert not tokens.store(tokens.new(), client, scope="api", seconds=3600)
