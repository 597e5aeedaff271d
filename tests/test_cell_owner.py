"""What a cell tells the router about its organizations."""

import json

import pytest
from django.urls import reverse

from messaging.models import ProviderAccount
from rme.core import cell_calls
from rme.tenants import api_keys
from rme.tenants.models import Invitation
from rme.tenants.oauth import tokens
from tests import factories, rest
from tests.tenants.access.scene import member

pytestmark = pytest.mark.django_db
SECRET, PATH = "s" * 32, "/cell/owner"


@pytest.fixture(autouse=True)
def cell(settings):
    settings.CELL, settings.CELL_SECRET = "eu", SECRET
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:2"}


def ask(client, body, authorization=None, **headers):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    header = cell_calls.sign(SECRET, f"POST {PATH}", text) if authorization is None else authorization
    return client.post(PATH, text, "application/json", headers={"Authorization": header, **headers})


def owner(client, kind, value):
    answer = ask(client, {"kind": kind, "value": value})
    assert answer.status_code == 200
    return answer.json()["organization"], answer.json()["cell"]
