"""Fifty identical creates at once make one record, and every answer has its id."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from bot.models import BotSettings
from rme.crm.models import Account, Case, Contact
from tests import factories
from tests.bot.conftest import Bot, bot_of

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 50


def at_once(bot, action, *variants):
    """Post at once from as many threads; gives the bodies."""

    def post(number: int):
        fields = dict(variants[number % len(variants)])
        key = fields.pop("key", None)
        own = Bot(bot.org, bot.key, Client())
        try:
            headers = {"Idempotency-Key": key} if key else {}
            return own.post(action, headers, **fields).json()
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(post, range(AT_ONCE)))


@pytest.mark.promise("once-2")
@pytest.mark.parametrize(
    ("action", "variants", "model"),
    [
        ("Create_Account", [{"accountName": "Acme"}, {"accountName": "ACME, Inc."}], Account),
        (
            "Create_Contact",
            [
                {"lastName": "L", "email": "ada@bücher.example"},
                {"lastName": "M", "email": "ADA@xn--bcher-kva.example"},
            ],
            Contact,
        ),
        ("Create_Contact", [{"lastName": "L"}], Contact),
        ("Create_Case", [{"Subject": "S", "Issue": "I"}], Case),
        (
            "Create_Case",
            [
                {"Subject": "S", "Issue": "I", "key": "k"},
                {"Subject": "T", "Issue": "I", "key": "k"},
            ],
            Case,
        ),
    ],
    ids=["account", "contact", "contact-without-email", "case", "case-by-key"],
)
def test_one_record_is_made(redis, action, variants, model):
    bot = bot_of(factories.organization())
    bodies = at_once(bot, action, *variants)
    row = model.objects.get()
    assert {(body["code"], body["id"]) for body in bodies} == {(200, str(row.pk))}
    assert sorted(body["created"] for body in bodies) == [False] * (AT_ONCE - 1) + [True]


@pytest.mark.promise("once-2")
def test_one_of_simultaneous_creates_succeeds_if_duplicates_are_rejected(redis):
    bot = bot_of(factories.organization())
    BotSettings.objects.create(organization=bot.org, on_duplicate_contact="reject")
    bodies = at_once(bot, "Create_Contact", {"lastName": "L", "email": "a@b.example"})
    row = Contact.objects.get()
    assert {body["id"] for body in bodies} == {str(row.pk)}
    assert sorted(body["code"] for body in bodies) == [200] + [409] * (AT_ONCE - 1)


@pytest.mark.promise("embedded-5")
def test_fifty_cases_have_fifty_numbers(redis):
    bot = bot_of(factories.organization())
    at_once(bot, "Create_Case", *({"Subject": f"S{i}", "Issue": "I"} for i in range(AT_ONCE)))
    numbers = sorted(Case.objects.values_list("number", flat=True))
    assert numbers == [f"{number:08}" for number in range(1, AT_ONCE + 1)]


@pytest.mark.promise("once-6")
def test_no_lock_is_left(redis):
    bot = bot_of(factories.organization())
    at_once(bot, "Create_Account", {"accountName": "Acme"})
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE l.locktype = 'advisory' AND d.datname = current_database()"
        )
        assert cursor.fetchone() == (0,)
