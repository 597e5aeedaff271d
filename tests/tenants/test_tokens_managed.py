"""Revoking and introspecting tokens."""

from urllib.parse import urlencode

import pytest
from django.test import Client

from rme.tenants import applications
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
