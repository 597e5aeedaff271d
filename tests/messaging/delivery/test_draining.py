"""An account that is paused takes nothing; one that drains ends what it began."""

from datetime import UTC, datetime

import pytest

from messaging.delivery import sweeper
from messaging.models import Delivery, ProviderAccount
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Retryable, Unknown
from tests import factories
from tests.messaging.delivery.accounts.test_routing import Scripted, scripted
from tests.rest import message, work

__all__ = ["scripted"]

pytestmark = pytest.mark.django_db


def _set(state):
    ProviderAccount.objects.filter(name="first").update(state=state)
    TtlCache.clear_all()


def _ready():
    Delivery.objects.filter(status="ACCEPTED").update(due_at=datetime.now(UTC))
    work()


@pytest.mark.promise("routes-6")
@pytest.mark.parametrize(("state", "by"), [("DRAINING", "first"), ("PAUSED", "second")])
def test_retry_is_sent_by_a_draining_account_and_not_by_a_paused_one(api, org, scripted, state, by):
    scripted("first", Retryable("down"), priority=1)
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert Delivery.objects.get().waiting == "PROVIDER"
    scripted("second", Accepted("1"), priority=2)
    Scripted.answers["first"] = Accepted("1")
    Scripted.sent.clear()
    _set(state)
    later = api.send(message(factories.contact(org))).json()
    _ready()
    assert (api.get(message_id)["provider"], later["provider"]) == (by, "second")
    assert sum(Scripted.sent.values()) == 2


def test_unknown_outcome_is_resent_by_the_draining_account(api, org, scripted):
    scripted("first", Unknown("no answer"))
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    _set("DRAINING")
    Scripted.answers["first"] = Accepted("1")
    Delivery.objects.update(due_at=datetime.now(UTC))
    sweeper.resolve_unknown()
    _ready()
    assert (api.get(message_id)["status"], Scripted.sent["first"]) == ("SENT", 2)


def test_messages_wait_for_a_paused_account_if_it_is_the_only_one(api, org, scripted):
    scripted("first", Accepted("1"))
    _set("PAUSED")
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    assert (Delivery.objects.get().waiting, Scripted.sent) == ("PROVIDER", {})
    _set("ACTIVE")
    _ready()
    assert (api.get(message_id)["status"], Scripted.sent) == ("SENT", {"first": 1})


@pytest.mark.promise("routes-6")
def test_without_another_account_messages_are_refused_while_one_drains(api, org, scripted):
    scripted("first", Accepted("1"))
    early = api.send(message(factories.contact(org))).json()["messageId"]
    _set("DRAINING")
    answer = api.send(message(factories.contact(org)))
    expected = "No provider account for email."
    assert (answer.status_code, answer.json()["error"]["message"]) == (502, expected)
    work()  # what was accepted and not tried waits for another account
    assert (api.get(early)["recipients"][0]["waiting"], Scripted.sent) == ("PROVIDER", {})
