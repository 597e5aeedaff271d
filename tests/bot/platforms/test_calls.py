"""The bot's calls on remote platforms, from the request to the stub and back."""

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened", "redis")]


@pytest.mark.promise("look-ups-11")
def test_created_records_are_found_by_the_bot(bot, rows):
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


@pytest.mark.promise("bot-failures-12")
def test_unknown_parent_is_reported_with_its_field(bot, rows):
    response = bot.post("Create_Contact", lastName="L", AccountID="999")
    assert response.status_code == 422
    assert response.json()["error"] == "unknown_parent"
    assert response.json()["field"] == "AccountID"
