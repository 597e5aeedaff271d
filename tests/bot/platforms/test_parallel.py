"""Fifty identical creates at once make one record, on every platform."""

from typing import Any

import pytest

from rme.crm.models import Account, Case, Contact
from tests.bot.test_parallel import AT_ONCE, at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("opened")]

PLATFORMS_OBJECTS = {
    "Create_Account": (Account, "Account", "res.partner"),
    "Create_Contact": (Contact, "Contact", "res.partner"),
    "Create_Case": (Case, "Case", "helpdesk.ticket"),
}


def ids_on(rows: Any, action: str) -> list[str]:
    """Return the ids of all records of the kind that an action makes."""
    model, salesforce, odoo = PLATFORMS_OBJECTS[action]
    if not hasattr(rows, "server"):
        return [str(key) for key in model.objects.values_list("pk", flat=True)]
    there = rows.server.rows
    return [str(row.get("Id") or row["id"]) for row in there.get(salesforce) or there.get(odoo, [])]


@pytest.mark.promise("once-2")
@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("Create_Account", {"accountName": "Acme"}),
        ("Create_Contact", {"lastName": "L", "email": "ada@example.org"}),
        ("Create_Contact", {"lastName": "L"}),
        ("Create_Case", {"Subject": "S", "Issue": "I"}),
    ],
    ids=["account", "contact", "contact-without-email", "case"],
)
def test_one_record_is_made(any_bot, any_rows, settings, action, fields):
    settings.BOT_SECONDS = 30.0  # one after another, on however busy a machine
    bodies = at_once(any_bot, action, fields)
    (made,) = ids_on(any_rows, action)
    assert {(body["code"], body["id"]) for body in bodies} == {(200, made)}
    assert sorted(body["created"] for body in bodies) == [False] * (AT_ONCE - 1) + [True]
