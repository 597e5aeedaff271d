"""Suppressions of contacts whom a remote platform keeps: asked at once, and in no transaction."""

from collections.abc import Iterator
from typing import Any

import pytest

from messaging.consent import suppression_import
from messaging.models import Suppression
from rme.tenants.models import Membership
from tests.crm import remote
from tests.crm.test_contacts import connect
from tests.fakes.http1 import respond
from tests.fakes.odoo import OdooServer
from tests.messaging.consent.suppression_import_scene import HEADER, counts, finish, start
from tests.messaging.console.conftest import url
from tests.rest import Api, error
from tests.tenants.admin.scene import person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("opened")]
AWAY = "The organization's platform does not answer."


@pytest.fixture
def odoo(org: Any) -> Iterator[OdooServer]:
    with OdooServer() as running:
        connect(org, "odoo", remote.odoo_settings(running), remote.ODOO_MAPPING)
        yield running


@pytest.fixture
def transactions(odoo: OdooServer) -> list[list[str]]:
    return remote.open_transactions(odoo)


def form(contact_id: str) -> dict[str, Any]:
    return {"channel": "PUSH", "contact": contact_id, "reason": "MANUAL"}


def test_a_bulk_asks_the_platform_once(org, odoo, transactions):
    known = [odoo.add("res.partner", name=f"P {n}") for n in range(20)]
    entries = [{"channel": "PUSH", "contactId": each} for each in [*known, "999"]]
    answer = Api(org).call("POST", "/suppressions", {"entries": entries}).json()
    assert (answer["accepted"], answer["rejected"]) == (20, 1)
    why = "no such contact"
    expected = error("NOT_FOUND", f"contactId: {why}", ("contactId", why))
    assert answer["results"][20] == {"index": 20, **expected}
    assert transactions == [[]]


def test_the_form_asks_before_its_transaction(org, odoo, transactions):
    ada = odoo.add("res.partner", name="Ada")
    owner = person("owner", org, Membership.Role.OWNER)
    shown = owner.post(url("suppression_new"), form("999"))
    assert shown.context["form"].errors == {
        "contact": ["No contact found. Try the email address or the id."]
    }
    assert owner.post(url("suppression_new"), form(ada)).status_code == 302
    assert transactions == [[], []]
    odoo.answer = lambda c, s: respond(c, 500, b"<html>")  # type: ignore[method-assign]
    shown = owner.post(url("suppression_new"), form("998"))
    assert shown.context["form"].errors == {"contact": [AWAY]}


def test_an_import_asks_before_its_transaction(org, odoo, transactions):
    known = [odoo.add("res.partner", name=f"P {n}") for n in range(3)]
    rows = "".join(f"PUSH,,{each},,,\n" for each in [*known, "999"])
    run = start(org, HEADER + rows)
    finish()
    assert counts(run) == ("DONE", 4, 4, 3, 0, 0, 1)
    assert list(suppression_import.rejected_rows(run))[1:] == [("5", "contactId", "does not exist")]
    assert transactions == [[]]


def test_no_suppression_is_added_while_the_platform_is_down(org, odoo):
    odoo.answer = lambda c, s: respond(c, 500, b"<html>")  # type: ignore[method-assign]
    answer = Api(org).call("POST", "/suppressions", {"channel": "PUSH", "contactId": "1"})
    assert (answer.status_code, answer.json()) == (503, error("UNAVAILABLE", AWAY))
    assert not Suppression.objects.exists()
