"""Every route, while the database takes nothing that is written: a standby, or a switch-over."""

import json
from contextlib import contextmanager

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from rme.crm.models import Contact
from tests.rest import message
from tests.routes import every_route
from tests.tenants.admin.addresses import PEOPLE, Addresses
from tests.tenants.admin.scene import fill

pytestmark = pytest.mark.django_db(transaction=True)

KEY = {"Idempotency-Key": "sent before"}


@contextmanager
def read_only():
    """Make the tests' database read-only in all new connections while the block runs."""
    name = connection.settings_dict["NAME"]

    def change(how):
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
            cursor.execute(f'ALTER DATABASE "{name}" {how}')
        connection.close()
        connection.close_pool()

    change("SET default_transaction_read_only = on")
    try:
        yield
    finally:
        change("RESET default_transaction_read_only")


def writes(contact):
    """Return calls of programs that are stored, as path and body."""
    person = {"contactId": str(contact.pk)}
    calls = {
        "messages": message(contact),
        "messages/bulk": {"messages": [message(contact)]},
        "suppressions": {"channel": "EMAIL", "address": "a@example.org"},
        "consent": {
            "entries": [{**person, "channel": "EMAIL", "category": "NEWS", "status": "OPTED_OUT"}]
        },
        "devices": {**person, "platform": "ANDROID", "token": "t"},
        "webhook-endpoints": {"url": "https://hooks.example.com/", "types": ["message.sent"]},
    }
    return [(f"/rme/v1/{path}", json.dumps(body)) for path, body in calls.items()]


def test_no_route_answers_500(org):
    """What is only read is answered; the first statement that writes is refused."""
    api = fill(org)
    root = get_user_model().objects.create_superuser("root", "root@example.org", "x")
    person = Client(raise_request_exception=False)
    person.force_login(root)
    person.get("/admin/")  # the session has its times
    pages = Addresses(org, root).all()
    programs = [path for path in every_route() if not path.startswith(PEOPLE)]
    bearer = {"Authorization": f"Bearer {api.token}"}
    found = {}

    def call(method, path, *body, **more):
        answer = getattr(person, method)(path, *body, headers=bearer, **more)
        found[method, path] = answer.status_code, answer.get("Retry-After")

    contact = Contact.objects.filter(organization=org).first()
    assert api.send(message(contact), **KEY).status_code == 202
    with read_only():
        for path in {*pages, *programs}:
            call("get", path)
            call("post", path)
        stored = writes(contact)
        for path, body in stored:
            call("post", path, body, content_type="application/json")
        repeated = api.send(message(contact), **KEY)
    failed = {key: told for key, told in found.items() if told[0] >= 500}
    assert {key: told for key, told in failed.items() if told != (503, "5")} == {}
    assert {path: found["post", path] for path, _ in stored} == {
        path: (503, "5") for path, _ in stored
    }
    assert (repeated.status_code, repeated.get("Retry-After")) == (503, "5")
