"""Platforms that fail: the answer that bots get, how soon, and the effect of a repeated create."""

import threading
import time

import pytest
from django.db import OperationalError, connection, transaction

from bot.models import BotSettings, Creation
from rme.core.db import locks
from rme.crm.connectors import REGISTRY
from rme.crm.connectors.base import (
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.models import Account, Case, Contact
from tests import factories
from tests.bot.conftest import bot_of, failure
from tests.bot.refusals_scene import status_and_body
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.django_db

EMAIL = "a@b.example"


@pytest.fixture
def platform(monkeypatch):
    """Put a platform into the registry that fails as its attributes say."""

    class Failing(EmbeddedConnector):
        on_find = None
        on_create = None
        after_create = None

        def find_contacts_by_email(self, email, *, limit, deadline):
            if self.on_find:
                raise self.on_find
            return super().find_contacts_by_email(email, limit=limit, deadline=deadline)

        def create(self, new, *, deadline):
            if self.on_create:
                raise self.on_create
            made = super().create(new, deadline=deadline)
            if self.after_create:
                raise self.after_create
            return made

    monkeypatch.setitem(REGISTRY, "embedded", Failing)
    return Failing


FAULTS = [
    (PlatformLimit(17), 503, "Service Unavailable", "crm_limit", "The platform's quota is used up"),
    (PlatformSlow(), 504, "Gateway Timeout", "crm_timeout", "The platform did not answer in time"),
    (
        PlatformAway("secret"), 502, "Bad Gateway", "crm_unavailable",
        "The platform cannot be reached",
    ),
    (
        PlatformRefused("secret"), 502, "Bad Gateway", "crm_auth",
        "The platform does not take our credentials",
    ),
    (
        MappingWrong("secret"), 502, "Bad Gateway", "crm_mapping",
        "The field mapping does not fit the platform",
    ),
]  # fmt: skip


@pytest.mark.promise("bot-failures-1", "bot-failures-18", "bot-failures-19")
@pytest.mark.parametrize(
    ("error", "code", "status", "name", "message"), FAULTS, ids=[fault[3] for fault in FAULTS]
)
def test_platform_error_is_reported_in_our_own_words(
    bot, platform, error, code, status, name, message
):
    platform.on_find = error
    response = bot.get("Confirm_Contact", email=EMAIL)
    assert status_and_body(response) == (code, failure(code, status, name, message))
    assert response.get("Retry-After") == ("17" if code == 503 else None)
    platform.on_find, platform.on_create = None, error
    response = bot.post("Create_Contact", lastName="L", email=EMAIL)
    more = {"outcome": "unknown"} if code == 504 else {}
    assert status_and_body(response) == (code, failure(code, status, name, message, **more))


@pytest.mark.promise("once-3")
def test_a_create_that_timed_out_may_be_repeated(bot, platform):
    fields = {
        "Create_Contact": {"lastName": "L", "email": EMAIL},
        "Create_Account": {"accountName": "Acme"},
        "Create_Case": {"Subject": "S", "Issue": "I"},
    }
    for action, values in fields.items():
        platform.after_create = PlatformSlow()
        assert bot.post(action, **values).json()["outcome"] == "unknown"
        platform.after_create = None
        assert bot.create(action, **values)[1] is False
    assert [model.objects.count() for model in (Contact, Account, Case)] == [1, 1, 1]


@pytest.mark.promise("once-6")
def test_failed_create_leaves_nothing_behind(bot, platform):
    platform.on_create = PlatformAway()
    assert bot.post("Create_Case", Subject="S", Issue="I").status_code == 502
    assert not Creation.objects.exists()
    platform.on_create = None
    assert bot.create("Create_Case", Subject="S", Issue="I")[1]


@pytest.mark.promise("bot-failures-15")
@pytest.mark.parametrize("known", [True, False], ids=["named", "unnamed"])
def test_duplicate_reported_by_the_platform_is_a_conflict_or_the_record(bot, platform, known):
    platform.on_create = Duplicate("77" if known else "")
    identifier = "77" if known else ""
    response = bot.post("Create_Contact", lastName="L", email=EMAIL)
    conflict = failure(409, "Conflict", "duplicate", "The Contact exists already", id=identifier)
    if known:
        assert (response.json()["id"], response.json()["created"]) == ("77", False)
        BotSettings.objects.create(organization=bot.org, on_duplicate_account="reject")
        bot = bot_of(factories.organization("other"))
        BotSettings.objects.create(organization=bot.org, on_duplicate_contact="reject")
        response = bot.post("Create_Contact", lastName="L", email=EMAIL)
    assert status_and_body(response) == (409, conflict)


@pytest.mark.promise("bot-failures-12")
def test_parent_unknown_to_the_platform_is_rejected(bot, platform):
    account = Account.objects.create(organization=bot.org, name="A")
    platform.on_create = UnknownParent("account_id")
    response = bot.post("Create_Contact", lastName="L", AccountID=str(account.pk))
    wanted = failure(
        422, "Unprocessable Entity", "unknown_parent", "AccountID does not exist", "AccountID"
    )
    assert status_and_body(response) == (422, wanted)


@pytest.mark.promise("bot-calls-9", "bot-failures-2")
@pytest.mark.parametrize(
    ("error", "code", "status", "name", "message"),
    [
        (
            RuntimeError("secret"), 500, "Internal Server Error", "internal_error",
            "Something went wrong on our side.",
        ),
        (
            OperationalError("secret"), 503, "Service Unavailable", "unavailable",
            "The service cannot take requests right now.",
        ),
    ],
    ids=["unforeseen", "database-gone"],
)  # fmt: skip
def test_unexpected_error_has_the_same_shape(bot, platform, error, code, status, name, message):
    platform.on_find = error
    response = bot.get("Confirm_Contact", email=EMAIL)
    assert status_and_body(response) == (code, failure(code, status, name, message))
    assert response["Content-Type"] == "application/json"
    builder = bot_of(factories.organization("builder"))
    BotSettings.objects.create(organization=builder.org, always_200=True)
    response = builder.get("Confirm_Contact", email=EMAIL)
    assert status_and_body(response) == (200, failure(code, status, name, message))


@pytest.mark.promise("bot-calls-7")
@pytest.mark.django_db(transaction=True)
def test_answer_comes_in_time_while_tables_are_locked(redis, settings):
    settings.BOT_SECONDS = 0.4
    bot = bot_of(factories.organization())
    bot.confirm("Confirm_Account", accountName="A")
    locked, done = threading.Event(), threading.Event()

    def lock():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE crm_contact IN ACCESS EXCLUSIVE MODE")
            locked.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=lock)
    other.start()
    locked.wait(10)
    try:
        with Stopwatch() as watch:
            found = status_and_body(bot.get("Confirm_Contact", email=EMAIL))
            made = status_and_body(bot.post("Create_Contact", lastName="L", email=EMAIL))
    finally:
        done.set()
        other.join()
    message = "The platform did not answer in time"
    words = ("Gateway Timeout", "crm_timeout", message)
    assert found == (504, failure(504, *words))
    assert made == (504, failure(504, *words, outcome="unknown"))
    assert watch.seconds < 6  # of the ten for which the table is locked
    assert bot.create("Create_Contact", lastName="L", email=EMAIL)[1]


@pytest.mark.promise("bot-calls-7")
@pytest.mark.django_db(transaction=True)
def test_caller_waiting_too_long_for_the_same_create_gets_an_error(redis, settings):
    settings.BOT_SECONDS = 2.0  # PostgreSQL cancels the statement after 1.8, before we give it up
    bot = bot_of(factories.organization())
    bot.confirm("Confirm_Account", accountName="A")
    held, done = threading.Event(), threading.Event()

    def hold():
        with locks.holding([f"bot create {bot.org.pk} account acme"], time.monotonic() + 5):
            held.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)
    try:
        response = bot.post("Create_Account", accountName="Acme")
    finally:
        done.set()
        other.join()
    assert (response.status_code, response.json()["error"]) == (504, "crm_timeout")
    assert bot.create("Create_Account", accountName="Acme")[1]
