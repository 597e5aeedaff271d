"""Look-ups of contacts and accounts: what is found, and in which order."""

import pytest

from bot.models import BotSettings
from rme.crm.models import Account, Case, EventRegistration, Exhibitor, Speaker
from tests import factories
from tests.bot.confirm_scene import LOOK_UP_ACTIONS, look_ups
from tests.bot.conftest import bot_of

pytestmark = pytest.mark.django_db


def contact_record(row, **changes):
    record = {
        "contactID": str(row.pk),
        "firstName": row.first_name,
        "lastName": row.last_name,
        "name": f"{row.first_name} {row.last_name}",
        "email": row.email,
        "phone": row.phone or row.mobile,
        "AccountID": "",
        "accountName": "",
    }
    return {**record, **changes}


@pytest.mark.promise("bot-calls-1", "bot-calls-10", "look-ups-1")
@pytest.mark.parametrize("email", ["ada@example.org", " ADA@EXAMPLE.ORG ", "Ada@Example.org."])
def test_a_contact_is_found_by_email(bot, ada, account, email):
    wanted = contact_record(ada, AccountID=str(account.pk), accountName="Café Müller GmbH")
    assert bot.confirm("Confirm_Contact", email=email) == [wanted]


@pytest.mark.promise("look-ups-1")
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@bücher.example"),
        ("Ada@BÜCHER.example", "ada@bücher.example"),
        ("ada+tag@example.org", "ada+tag@example.org"),
    ],
)
def test_email_is_found_in_any_spelling(bot, stored, asked):
    row = factories.contact(bot.org, email=stored)
    assert bot.confirm("Confirm_Contact", email=asked) == [contact_record(row)]


@pytest.mark.promise("look-ups-9")
def test_unencoded_plus_in_query_is_read_as_plus(bot):
    row = factories.contact(bot.org, email="ada+tag@example.org", phone="+41446681800")
    path = f"/bot/api.php?org={bot.org.pk}&action="
    by_email = bot.client.get(
        f"{path}Confirm_Contact&email=ada+tag@example.org", headers=bot.headers()
    )
    by_phone = bot.client.get(
        f"{path}Confirm_Contact_Phone&phone=+41446681800", headers=bot.headers()
    )
    assert by_email.json()["msg"] == by_phone.json()["msg"] == [contact_record(row)]


@pytest.mark.promise("look-ups-1", "look-ups-8")
@pytest.mark.parametrize(
    "email", ["da@example.org", "ada@example.or", "nobody@example.org", "%@example.org"]
)
def test_look_up_without_a_match_answers_an_empty_list(bot, ada, email):
    assert bot.confirm("Confirm_Contact", email=email) == []


@pytest.mark.promise("look-ups-2")
@pytest.mark.parametrize(
    "phone", ["(212) 736-5000", "+1 212 736 5000", "212.736.5000", "+12125550100"]
)
def test_a_contact_is_found_by_any_phone(bot, ada, account, phone):
    wanted = contact_record(ada, AccountID=str(account.pk), accountName="Café Müller GmbH")
    assert bot.confirm("Confirm_Contact_Phone", phone=phone) == [wanted]


@pytest.mark.promise("look-ups-2")
def test_the_region_reads_a_phone(bot):
    swiss = bot_of(factories.organization("swiss", region="CH"))
    row = factories.contact(swiss.org, phone="", mobile="+41791234567")
    assert swiss.confirm("Confirm_Contact_Phone", phone="079 123 45 67") == [contact_record(row)]
    assert swiss.confirm("Confirm_Contact_Phone", phone="+1 791 234 5678") == []


@pytest.mark.promise("look-ups-2")
@pytest.mark.parametrize(
    ("region", "stored", "asked"),
    [
        ("DE", "+4933612345679", "33612345679"),  # national digits that begin like France's
        ("DE", "+33612345679", "33612345679"),
        ("DE", "+33612345679", "0033612345679"),
        ("DE", "+33612345679", "00 33 6 12 34 56 79"),
        ("US", "+33612345679", "0033612345679"),  # the United States dial 011 for abroad
        ("US", "+33612345679", "011 33 6 12 34 56 79"),
        ("MX", "+525562000000", "+52 1 55 6200 0000"),
        ("MX", "+5215562000000", "+52 55 6200 0000"),
        ("MX", "+5215562000000", "55 6200 0000"),
        ("US", "+5215562000000", "005215562000000"),
    ],
)
def test_phone_is_found_as_people_dial_it(redis, region, stored, asked):
    bot = bot_of(factories.organization("abroad", region=region))
    row = factories.contact(bot.org, phone="", mobile=stored)
    factories.contact(bot.org, email="other@example.org", phone="", mobile="+12125550100")
    (found,) = bot.confirm("Confirm_Contact_Phone", phone=asked)
    assert found["contactID"] == str(row.pk)


@pytest.mark.promise("look-ups-2")
def test_ambiguous_digits_are_first_those_of_the_region(redis):
    bot = bot_of(factories.organization("german", region="DE"))
    german, french = (
        factories.contact(bot.org, email=f"{number}@example.org", phone="", mobile=number)
        for number in ("+4933612345679", "+33612345679")
    )
    found = bot.confirm("Confirm_Contact_Phone", phone="33612345679")
    assert [each["contactID"] for each in found] == [str(german.pk)]
    found = bot.confirm("Confirm_Contact_Phone", phone="+33612345679")
    assert [each["contactID"] for each in found] == [str(french.pk)]


@pytest.mark.promise("bot-calls-11")
def test_the_newest_contacts_come_first_and_no_more_than_ten(bot):
    rows = [factories.contact(bot.org, email="same@example.org") for _ in range(12)]
    assert bot.confirm("Confirm_Contact", email="same@example.org") == [
        contact_record(row) for row in rows[:1:-1]
    ]
    BotSettings.objects.create(organization=factories.organization("few"), max_records=1)
    few = bot_of(BotSettings.objects.get().organization)
    factories.contact(few.org, email="same@example.org")
    last = factories.contact(few.org, email="same@example.org")
    assert few.confirm("Confirm_Contact", email="same@example.org") == [contact_record(last)]


@pytest.mark.promise("bot-calls-10", "look-ups-7", "look-ups-9")
@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("Café Müller GmbH", "exact"),
        ("Café Müller GmbH ", "exact"),
        ("cafe muller", "folded"),
        ("CAFE-MÜLLER G.m.b.H.", "folded"),
    ],
)
def test_an_account_is_found_by_name(bot, account, name, match):
    assert bot.confirm("Confirm_Account", accountName=name) == [
        {
            "AccountID": str(account.pk),
            "accountName": "Café Müller GmbH",
            "phone": "+41",
            "website": "https://x.example",
            "matchType": match,
        }
    ]


@pytest.mark.promise("bot-calls-11", "look-ups-7")
def test_exact_account_match_comes_first(bot, account):
    Account.objects.create(organization=bot.org, name="Cafe Muller Ltd")
    names = [
        (record["accountName"], record["matchType"])
        for record in bot.confirm("Confirm_Account", accountName="Café Müller GmbH")
    ]
    assert names == [("Café Müller GmbH", "exact"), ("Cafe Muller Ltd", "folded")]
    assert bot.confirm("Confirm_Account", accountName="Café") == []


@pytest.mark.promise("look-ups-10")
def test_another_organization_finds_nothing(bot, ada, account, event):
    Case.objects.create(organization=bot.org, number="1", subject="S", issue="I", contact=ada)
    EventRegistration.objects.create(organization=bot.org, event=event, name="A", email=ada.email)
    Speaker.objects.create(organization=bot.org, event=event, contact=ada)
    Exhibitor.objects.create(organization=bot.org, event=event, contact=ada)
    stranger = bot_of(factories.organization("other"))
    calls = look_ups(ada, account)
    records = {action: len(bot.confirm(action, **fields)) for action, fields in calls.items()}
    theirs = {action: stranger.confirm(action, **fields) for action, fields in calls.items()}
    assert records == dict.fromkeys(LOOK_UP_ACTIONS, 1)
    assert theirs == {action: [] for action in LOOK_UP_ACTIONS}
