"""The bot's calls on remote platforms, from the request to the stub and back."""

import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from rme.crm.models_platform import Platform
from tests import factories
from tests.bot.conftest import Bot, bot_of, failure
from tests.crm import remote
from tests.crm.breaking import BREAKS
from tests.crm.remote import OdooRows, SalesforceRows
from tests.fakes.odoo import OdooServer
from tests.fakes.salesforce import SalesforceServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened", "redis")]


@pytest.fixture(params=["odoo", "salesforce"])
def rows(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "odoo":
        with OdooServer() as odoo:
            yield OdooRows(odoo, remote.odoo(odoo))
    else:
        with SalesforceServer() as salesforce:
            yield SalesforceRows(salesforce, remote.salesforce(salesforce))


@pytest.fixture
def bot(rows: Any) -> Bot:
    """Give a bot of an organization that keeps its records on the platform."""
    platform = rows.connector.platform
    raw = remote.ODOO_MAPPING if platform.kind == "odoo" else remote.SALESFORCE_MAPPING
    org = factories.organization()
    Platform.objects.create(
        organization=org,
        kind=platform.kind,
        credentials=orjson.dumps(platform.settings).decode(),
        mapping=raw,
    )
    return bot_of(org)


def test_what_a_bot_makes_it_finds(bot, rows):
    account, made = bot.create("Create_Account", accountName="Acme, Inc.")
    assert made
    assert bot.create("Create_Account", accountName="ACME") == (account, False)
    given = {"lastName": "Lovelace", "firstName": "Ada", "email": "ada@example.org"}
    contact, made = bot.create("Create_Contact", **given, AccountID=account)
    assert made
    assert bot.create("Create_Contact", **given, AccountID=account) == (contact, False)
    case, _ = bot.create("Create_Case", Subject="S", Issue="It's & <b>", ContactID=contact)
    assert bot.create("Create_Case", Subject="S", Issue="It's & <b>", ContactID=contact) == (
        case,
        False,
    )
    assert bot.confirm("Confirm_Contact", email="ADA@example.org") == [
        {
            "contactID": contact,
            "firstName": "Ada",
            "lastName": "Lovelace",
            "name": "Ada Lovelace",
            "email": "ada@example.org",
            "phone": "",
            "AccountID": account,
            "accountName": "Acme, Inc.",
        }
    ]
    (found,) = bot.confirm("Confirm_Account", accountName="acme")
    assert (found["AccountID"], found["matchType"]) == (account, "folded")
    (ticket,) = bot.confirm("Confirm_Case", email="ada@example.org")
    assert (ticket["caseID"], ticket["Issue"], ticket["isClosed"]) == (case, "It's & <b>", False)
    assert (ticket["ContactID"], ticket["AccountID"]) == (contact, account)


def test_a_parent_that_is_not_there_is_named(bot, rows):
    response = bot.post("Create_Contact", lastName="L", AccountID="999")
    assert response.status_code == 422
    assert response.json()["error"] == "unknown_parent"
    assert response.json()["field"] == "AccountID"


@pytest.mark.parametrize(
    ("name", "code", "status", "error"),
    [
        ("hangs", 504, "Gateway Timeout", "crm_timeout"),
        ("half a body", 502, "Bad Gateway", "crm_unavailable"),
        ("ten megabytes", 502, "Bad Gateway", "crm_unavailable"),
        ("html", 502, "Bad Gateway", "crm_unavailable"),
    ],
)
def test_a_broken_platform_is_told_in_time(bot, rows, name, code, status, error):
    bot.confirm("Confirm_Contact", email="ada@example.org")
    rows.server.answer = BREAKS[name][0]
    began = time.monotonic()
    response = bot.get("Confirm_Contact", email="ada@example.org")
    assert time.monotonic() - began < 4.2
    body = response.json()
    assert response.status_code == code
    assert body == failure(code, status, error, body["message"])
    assert "html" not in body["message"].lower()
    made = bot.post("Create_Account", accountName="Acme")
    assert (made.status_code, made.json()["error"]) in ((504, "crm_timeout"), (code, error))
