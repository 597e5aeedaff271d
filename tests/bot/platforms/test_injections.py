"""Texts that would be queries (SQL, SOQL, SOSL, Odoo's domains, templates) as every parameter of
every action, on every platform: found as texts or not found, and never more.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from bot import actions
from tests.bot.conftest import FORM, UNAUTHORIZED, bad, failure
from tests.bot.refusals_scene import status_and_body
from tests.crm.conformance import INJECTIONS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened")]

TEXTS = [
    *INJECTIONS,
    "1); SELECT pg_sleep(5); --",
    "x} RETURNING Contact(Id) //",
    "FIND {a*} IN ALL FIELDS RETURNING User(Id)",
    "['|', (1, '=', 1)]",
    '["id", "!=", 0]',
    "{{7*7}}%s%(x)s",
    "<script>alert(1)</script>",
]
EMAILS = ["x'or'1'='1@example.org", "%@example.org", "_da@example.org", "*@example.org"]
ADA = {"email": "ada@example.org", "phone": "+12127365000"}


@pytest.fixture
def there(any_rows: Any) -> dict[str, str]:
    """Put a record of each kind in, that more might be found; return their ids."""
    account = any_rows.account(name="Acme")
    contact = any_rows.contact(last_name="Lovelace", first_name="Ada", account_id=account, **ADA)
    case = any_rows.case(subject="Old", contact_id=contact)
    event = any_rows.event(name="Congress", starts_at=datetime(2026, 3, 4, tzinfo=UTC))
    registration = any_rows.registration(event_id=event, name="Ada", email=ADA["email"])
    speaker = any_rows.speaker(event_id=event, contact_id=contact, session_title="T")
    exhibitor = any_rows.exhibitor(event_id=event, contact_id=contact, booth="B1")
    return {
        "AccountID": account,
        "contactID": contact,
        "caseID": case,
        "eventID": event,
        "registrationID": registration,
        "speakerID": speaker,
        "exhibitorID": exhibitor,
    }


def look_ups(there: dict[str, str]) -> dict[str, tuple[dict[str, str], str]]:
    """Return the parameters that find what is there, and by which id it is known, by action."""
    contact = {"contactID": there["contactID"]}
    return {
        "Confirm_Contact": ({"email": ADA["email"]}, "contactID"),
        "Confirm_Contact_Phone": ({"phone": ADA["phone"]}, "contactID"),
        "Confirm_Case": ({"email": ADA["email"]}, "caseID"),
        "Confirm_Registration": ({"email": ADA["email"]}, "registrationID"),
        "Confirm_Speaker": ({**contact, "eventID": there["eventID"]}, "speakerID"),
        "Confirm_Exhibitor": (contact, "exhibitorID"),
        "Confirm_Account": ({"accountName": "Acme"}, "AccountID"),
    }


def unknown(name: str) -> Any:
    message = f"{name} does not exist"
    return 422, failure(422, "Unprocessable Entity", "unknown_parent", message, name)


def answer_to(name: str) -> Any:
    """Return the whole answer to a text that stands for a parameter of a look-up."""
    if name == "email":
        return 400, bad("email", "is not an email address", "invalid_email")
    if name == "phone":
        return 400, bad("phone", "is not a phone number", "invalid_phone")
    return []


@pytest.mark.promise("bot-failures-21", "salesforce-5")
@pytest.mark.parametrize("text", TEXTS)
def test_look_up_by_query_syntax_finds_nothing(any_bot, there, text):
    fields_of = {action: fields for action, (fields, _) in look_ups(there).items()}
    asked_fields = [(action, name) for action, fields in fields_of.items() for name in fields]
    assert asked_fields
    for action, name in asked_fields:
        asked = {**fields_of[action], name: text}
        if refusal := answer_to(name):
            assert status_and_body(any_bot.get(action, **asked)) == refusal
        else:
            assert any_bot.confirm(action, **asked) == []
    finds_what_is_there(any_bot, there)


def finds_what_is_there(bot: Any, there: dict[str, str]) -> None:
    for action, (given, key) in look_ups(there).items():
        assert [each[key] for each in bot.confirm(action, **given)] == [there[key]]


@pytest.mark.promise("bot-failures-21")
@pytest.mark.parametrize("email", EMAILS)
def test_address_with_query_syntax_finds_nobody(any_bot, there, email):
    for action in ("Confirm_Contact", "Confirm_Case", "Confirm_Registration"):
        response = any_bot.get(action, email=email)
        assert (response.status_code, response.json()["msg"]) in ((200, []), (400, []))


@pytest.mark.promise("bot-failures-21")
@pytest.mark.parametrize("text", TEXTS)
def test_create_stores_query_syntax_as_plain_text(any_bot, there, text):
    account, made = any_bot.create("Create_Account", accountName=text)
    assert made
    (found,) = any_bot.confirm("Confirm_Account", accountName=text)
    assert (found["AccountID"], found["accountName"]) == (account, text)
    eve = {"lastName": text, "firstName": text, "email": "eve@example.org"}
    contact, _ = any_bot.create("Create_Contact", **eve, AccountID=account)
    (found,) = any_bot.confirm("Confirm_Contact", email="eve@example.org")
    assert (found["contactID"], found["name"], found["AccountID"], found["accountName"]) == (
        contact, f"{text} {text}", account, text
    )  # fmt: skip
    case, _ = any_bot.create("Create_Case", Subject=text, Issue=text, ContactID=contact)
    assert any_bot.create("Create_Case", Subject=text, Issue=text, ContactID=contact) == (
        case, False
    )  # fmt: skip
    (found,) = any_bot.confirm("Confirm_Case", email="eve@example.org")
    assert (found["caseID"], found["Subject"], found["Issue"]) == (case, text, text)
    finds_what_is_there(any_bot, there)


@pytest.mark.promise("bot-failures-21")
@pytest.mark.parametrize("text", TEXTS)
def test_query_syntax_matches_no_parent_address_action_organization_or_key(any_bot, there, text):
    case = {"Subject": "S", "Issue": "I"}
    for name in ("ContactID", "AccountID"):
        assert status_and_body(any_bot.post("Create_Case", **case, **{name: text})) == unknown(name)
    assert status_and_body(any_bot.post("Create_Contact", lastName="L", AccountID=text)) == unknown(
        "AccountID"
    )
    wrong = any_bot.post("Create_Contact", lastName="L", email=text)
    assert status_and_body(wrong) == (400, bad("email", "is not an email address", "invalid_email"))
    for response in (any_bot.get(text), any_bot.post(text)):
        wanted = bad("action", "is not one of this path", "unknown_action")
        assert status_and_body(response) == (400, wanted)
    stranger = any_bot.client.get(
        "/bot/api.php", {"action": "Confirm_Contact", "org": text}, headers=any_bot.headers()
    )
    assert status_and_body(stranger) == (401, UNAUTHORIZED)
    headers = {"X-API-Key": text.encode().decode("latin-1")}
    body = f"action=Create_Account&org={any_bot.org.pk}&accountName=A"
    response = any_bot.client.post("/bot/api_create.php", body, FORM, headers=headers)
    assert status_and_body(response) == (401, UNAUTHORIZED)
    finds_what_is_there(any_bot, there)


@pytest.mark.promise("bot-failures-21")
def test_every_parameter_of_every_action_is_tried(there):
    tried = {action: set(given) for action, (given, _) in look_ups(there).items()}
    tried |= {
        "Create_Account": {"accountName"},
        "Create_Contact": {"lastName", "firstName", "email", "AccountID"},
        "Create_Case": {"Subject", "Issue", "ContactID", "AccountID"},
    }
    assert tried == {
        action: {parameter.name for parameter in one.parameters}
        for action, one in {**actions.CONFIRM, **actions.CREATE}.items()
    }
