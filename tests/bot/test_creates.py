"""Creates: what they make, what they find there, and what they refuse."""

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from bot.models import BotSettings, Creation
from rme.crm.models import Account, Case, Contact
from tests import factories
from tests.bot.conftest import FORM, REQUEST_ID, bad, bot_of, failure

pytestmark = pytest.mark.django_db

NOBODY = "00000000-0000-7000-8000-000000000000"


def settings(bot, **fields):
    BotSettings.objects.create(organization=bot.org, **fields)


def refused(response):
    return response.status_code, response.json()


@pytest.mark.promise("creates-1")
def test_account_is_created(bot):
    identifier, fresh = bot.create("Create_Account", accountName="  Café Müller GmbH ")
    assert fresh
    assert list(Account.objects.values_list("pk", "organization_id", "name", "name_folded")) == [
        (Account.objects.get().pk, bot.org.pk, "Café Müller GmbH", "cafemuller")
    ]
    assert identifier == str(Account.objects.get().pk)


@pytest.mark.promise("creates-2")
def test_contact_needs_only_a_last_name(bot):
    identifier, fresh = bot.create("Create_Contact", lastName="Lovelace")
    row = Contact.objects.get()
    assert (identifier, fresh) == (str(row.pk), True)
    assert (row.last_name, row.first_name, row.email, row.account_id) == ("Lovelace", "", "", None)


@pytest.mark.promise("creates-2")
def test_contact_is_created_with_all_fields(bot):
    account = Account.objects.create(organization=bot.org, name="A")
    fields = {"lastName": "L", "firstName": "A", "email": "A.L@bücher.example"}
    identifier, _ = bot.create("Create_Contact", **fields, accountid=str(account.pk))
    row = Contact.objects.get()
    assert (str(row.pk), row.first_name, row.email, row.account_id) == (
        identifier, "A", "a.l@xn--bcher-kva.example", account.pk
    )  # fmt: skip
    assert [
        found["contactID"] for found in bot.confirm("Confirm_Contact", email="a.l@BÜCHER.example")
    ] == [identifier]


@pytest.mark.promise("creates-3", "embedded-5")
def test_cases_are_numbered_on(bot):
    Case.objects.create(organization=bot.org, number="00000041", subject="S", issue="I")
    Case.objects.create(organization=bot.org, number="Z-9", subject="S", issue="I")
    Case.objects.create(
        organization=factories.organization("other"), number="00000100", subject="S", issue="I"
    )
    account = Account.objects.create(organization=bot.org, name="A")
    ada = factories.contact(bot.org, account=account)
    parents = {"ContactID": str(ada.pk), "AccountID": str(account.pk)}
    first, _ = bot.create("Create_Case", Subject="One", Issue="Text", **parents)
    second, _ = bot.create("Create_Case", Subject="Two", Issue="Text")
    columns = ("number", "subject", "issue", "status", "priority", "contact_id", "account_id")
    assert list(
        Case.objects.filter(pk__in=[first, second]).order_by("number").values_list(*columns)
    ) == [
        ("00000042", "One", "Text", "New", "Medium", ada.pk, account.pk),
        ("00000043", "Two", "Text", "New", "Medium", None, None),
    ]


@pytest.mark.promise("bot-failures-14", "once-1")
@pytest.mark.parametrize("name", ["Café Müller GmbH", "cafe  MULLER", "Cafe-Muller Ltd."])
def test_existing_account_of_the_name_is_returned(bot, name):
    first, _ = bot.create("Create_Account", accountName="Café Müller GmbH")
    assert bot.create("Create_Account", accountName=name) == (first, False)
    assert Account.objects.count() == 1


@pytest.mark.promise("bot-failures-14")
def test_existing_contact_of_the_email_is_returned(bot):
    row = factories.contact(bot.org, email="Ada@Example.org")
    found = bot.create("Create_Contact", lastName="Other", email="ada@EXAMPLE.org")
    assert found == (str(row.pk), False)
    assert Contact.objects.count() == 1


@pytest.mark.promise("bot-failures-15", "once-1")
def test_duplicates_are_rejected_if_the_organization_rejects_them(bot):
    settings(bot, on_duplicate_contact="reject", on_duplicate_account="reject")
    contact, _ = bot.create("Create_Contact", lastName="L", email="a@b.example")
    account, _ = bot.create("Create_Account", accountName="Acme")
    for action, fields, identifier, kind in (
        ("Create_Contact", {"lastName": "L", "email": "a@b.example"}, contact, "Contact"),
        ("Create_Account", {"accountName": "ACME Inc."}, account, "Account"),
    ):
        problem = f"The {kind} exists already"
        assert refused(bot.post(action, **fields)) == (
            409, failure(409, "Conflict", "duplicate", problem, id=identifier)
        )  # fmt: skip


@pytest.mark.promise("once-1")
def test_duplicates_are_created_if_the_organization_allows_them(bot):
    settings(bot, on_duplicate_contact="allow", on_duplicate_account="allow")
    for _ in range(2):
        assert bot.create("Create_Contact", lastName="L", email="a@b.example")[1]
        assert bot.create("Create_Account", accountName="Acme")[1]
    assert (Contact.objects.count(), Account.objects.count()) == (2, 2)


@pytest.mark.promise("once-4")
@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("Create_Case", {"Subject": "S", "Issue": "I"}),
        ("Create_Contact", {"lastName": "Lovelace", "firstName": "Ada"}),
    ],
)
def test_the_same_values_within_two_minutes_give_the_first(bot, action, fields):
    first, _ = bot.create(action, **fields)
    assert bot.create(action, **fields) == (first, False)
    other = bot_of(bot.org)
    assert other.create(action, **fields)[1]
    name = next(iter(fields))
    assert bot.create(action, **{**fields, name: "Another"})[1]
    Creation.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert bot.create(action, **fields)[1]


@pytest.mark.promise("once-5")
@pytest.mark.parametrize(
    ("action", "first", "then"),
    [
        ("Create_Case", {"Subject": "S", "Issue": "I"}, {"Subject": "T", "Issue": "J"}),
        ("Create_Account", {"accountName": "A"}, {"accountName": "B"}),
        ("Create_Contact", {"lastName": "A"}, {"lastName": "B"}),
    ],
)
def test_an_idempotency_key_gives_the_first(bot, action, first, then):
    key = {"Idempotency-Key": '"k 1"'}
    made = bot.post(action, key, **first).json()
    again = bot.post(action, {"Idempotency-Key": "k 1"}, **then).json()
    assert (made["created"], again["created"], again["id"]) == (True, False, made["id"])
    assert bot.post(action, {"Idempotency-Key": "k 2"}, **then).json()["created"]
    assert bot_of(bot.org).post(action, key, **{**then, next(iter(then)): "C"}).json()["created"]


@pytest.mark.promise("once-5")
def test_idempotency_key_is_scoped_to_one_kind_of_record(bot):
    key = {"Idempotency-Key": "k"}
    assert bot.post("Create_Account", key, accountName="A").json()["created"]
    assert bot.post("Create_Case", key, Subject="S", Issue="I").json()["created"]


@pytest.mark.parametrize("key", ["x" * 256, "ü"])
def test_malformed_idempotency_key_is_rejected(bot, key):
    response = bot.post("Create_Account", {"Idempotency-Key": key}, accountName="A")
    problem = bad("Idempotency-Key", "must be at most 255 printable characters")
    assert refused(response) == (400, problem)
    assert not Account.objects.exists()


@pytest.mark.promise("once-3")
def test_create_interrupted_before_it_was_recorded_is_found_again(bot):
    first, _ = bot.create("Create_Case", Subject="S", Issue="I")
    Creation.objects.update(record_id="")  # as a process leaves it that dies after the create
    assert bot.create("Create_Case", Subject="S", Issue="I") == (first, False)
    assert Creation.objects.get().record_id == first
    Case.objects.all().delete()
    Creation.objects.update(record_id="")  # as one leaves it that dies before
    assert bot.create("Create_Case", Subject="S", Issue="I")[1]


def test_expired_creations_are_deleted(bot):
    for number in range(3):
        bot.create("Create_Case", Subject=f"S{number}", Issue="I")
    Creation.objects.update(expires_at=Now() - timedelta(seconds=1))
    bot.create("Create_Case", Subject="S2", Issue="I")
    assert Creation.objects.count() == 1


def parent(name, why="does not exist"):
    message = f"{name} {why}"
    return 422, failure(422, "Unprocessable Entity", "unknown_parent", message, name)


@pytest.mark.promise("bot-failures-12")
@pytest.mark.parametrize("identifier", [NOBODY, "x", "' OR 1=1 --"])
def test_an_unknown_parent_is_refused(bot, identifier):
    case = {"Subject": "S", "Issue": "I"}
    assert refused(bot.post("Create_Contact", lastName="L", AccountID=identifier)) == parent(
        "AccountID"
    )
    assert refused(bot.post("Create_Case", **case, AccountID=identifier)) == parent("AccountID")
    assert refused(bot.post("Create_Case", **case, ContactID=identifier)) == parent("ContactID")
    assert (Contact.objects.count(), Case.objects.count()) == (0, 0)


@pytest.mark.promise("bot-failures-12")
def test_another_organizations_parent_is_as_unknown(bot):
    other = factories.organization("other")
    account = Account.objects.create(organization=other, name="A")
    ada = factories.contact(other)
    case = {"Subject": "S", "Issue": "I"}
    for response, name in (
        (bot.post("Create_Contact", lastName="L", AccountID=str(account.pk)), "AccountID"),
        (bot.post("Create_Case", **case, ContactID=str(ada.pk)), "ContactID"),
        (bot.post("Create_Case", **case, AccountID=str(ada.pk)), "AccountID"),
    ):
        assert refused(response) == parent(name)


@pytest.mark.promise("bot-failures-13")
def test_a_contact_of_another_account_is_refused(bot):
    own, others = (Account.objects.create(organization=bot.org, name=name) for name in "AB")
    ada = factories.contact(bot.org, account=others)
    free = factories.contact(bot.org)
    case = {"Subject": "S", "Issue": "I", "AccountID": str(own.pk)}
    response = bot.post("Create_Case", **case, ContactID=str(ada.pk))
    assert refused(response) == parent("ContactID", "belongs to another account")
    assert bot.create("Create_Case", **case, ContactID=str(free.pk))[1]


@pytest.mark.promise("bot-calls-4", "creates-4")
@pytest.mark.parametrize("sort", ["urlencoded", "multipart"])
@pytest.mark.parametrize(
    ("action", "fields", "model", "columns"),
    [
        ("Create_Account", {"accountName": "Zürich + Söhne & Co"}, Account, ("name",)),
        (
            "Create_Contact",
            {"lastName": "Süß+1", "firstName": "日本", "email": "a+b@b.example"},
            Contact,
            ("last_name", "first_name", "email"),
        ),
        (
            "Create_Case",
            {"Subject": "100 % — “ok”?", "Issue": "one=1&two=2\nüber + über"},
            Case,
            ("subject", "issue"),
        ),
    ],
    ids=["account", "contact", "case"],
)
def test_create_is_accepted_as_multipart_or_urlencoded_form(
    bot, sort, action, fields, model, columns
):
    given = {"ACTION": action, "Org": bot.org.pk, **fields}
    body = (given,) if sort == "multipart" else (urlencode(given), FORM)
    response = bot.client.post("/bot/api_create.php", *body, headers=bot.headers())
    row = model.objects.get()
    assert (response.status_code, response.json()) == (
        200,
        {
            "code": 200,
            "status": f"{model.__name__} Created Successfully",
            "id": str(row.pk),
            "created": True,
            "requestId": REQUEST_ID,
        },
    )
    assert tuple(getattr(row, column) for column in columns) == tuple(fields.values())


@pytest.mark.promise("once-4", "once-5")
def test_a_create_is_known_again_for_two_minutes_and_by_its_key_for_a_day(bot):
    bot.create("Create_Case", Subject="S", Issue="I")
    bot.post("Create_Case", {"Idempotency-Key": "k"}, Subject="T", Issue="I")
    lives = Creation.objects.order_by("id").values_list(F("expires_at") - F("created_at"))
    assert [round(life / timedelta(minutes=1)) for (life,) in lives] == [2, 24 * 60]


@pytest.mark.promise("creates-4")
def test_a_form_is_utf8_with_plus_for_space(bot):
    body = f"action=Create_Account&org={bot.org.pk}&accountName=Z%C3%BCrich+%2B+Co"
    response = Client().post(
        "/bot/api_create.php", body, "application/x-www-form-urlencoded", headers=bot.headers()
    )
    assert response.json()["created"]
    assert Account.objects.get().name == "Zürich + Co"
