"""What is kept of calls: a count, and a line in the log without personal data."""

import pytest

from rme.crm.connectors import REGISTRY
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.tenants.models import ApiKey, Organization
from tests.scrape import counted

pytestmark = pytest.mark.django_db


def calls():
    """Return how often each action was called, by the code that it got."""
    return {
        (dict(names)["action"], dict(names)["code"]): count
        for names, count in counted("rme_bot_calls_total").items()
    }


@pytest.mark.promise("keys-11")
def test_every_call_is_counted(bot, counting):
    bot.get("Confirm_Contact", email="a@b.example")
    bot.get("Confirm_Contact", email="nonsense")
    bot.get("Nonsense")
    bot.post("Create_Account", accountName="A")
    assert calls() == {
        ("Confirm_Contact", "200"): 1,
        ("Confirm_Contact", "400"): 1,
        ("(none)", "400"): 1,
        ("Create_Account", "200"): 1,
    }


@pytest.mark.promise("keys-11")
def test_rejected_and_failed_calls_are_counted(bot, counting, monkeypatch):
    class Broken(EmbeddedConnector):
        def find_contacts_by_email(self, email, *, limit, deadline):
            raise RuntimeError

    monkeypatch.setitem(REGISTRY, "embedded", Broken)
    bot.get("Confirm_Contact", email="a@b.example")
    bot.get("Nonsense")
    Organization.objects.update(calls_per_second=0)
    bot.get("Nonsense")
    assert calls() == {
        ("Confirm_Contact", "500"): 1,
        ("(none)", "400"): 1,
        ("(none)", "429"): 1,
    }


@pytest.mark.promise("keys-11", "keys-12")
def test_call_is_logged_without_its_parameters(bot, caplog):
    bot.get("Confirm_Contact", email="private@person.example")
    bot.post("Create_Contact", lastName="Private", email="private@person.example")
    records = [record.msg for record in caplog.records if isinstance(record.msg, list)]
    lines = [line for lines in records for line in lines if line["event"] == "request"]
    key = ApiKey.objects.get().public_id
    kept = ("method", "path", "status", "organization_id", "api_key", "action", "code")
    assert [tuple(line[name] for name in kept) for line in lines] == [
        ("GET", "/bot/api.php", 200, bot.org.pk, key, "Confirm_Contact", 200),
        ("POST", "/bot/api_create.php", 200, bot.org.pk, key, "Create_Contact", 200),
    ]
    assert "rivate" not in caplog.text
    assert bot.key.split("_", 2)[2] not in caplog.text
