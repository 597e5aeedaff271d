"""The contract's rules for statuses, pauses, categories and fairness."""

import ast
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from messaging.delivery import claims, deliver
from messaging.feedback import receipts
from messaging.models import Attempt, Category, Delivery, Pause, Suppression
from messaging.models.statuses import TRANSITIONS, Status, aggregate
from messaging.policy import organization_policy
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.outcomes import Accepted
from tests import factories
from tests.messaging.delivery.deliver_scene import Scripted, delivery
from tests.rest import Api, events, message, work

pytestmark = pytest.mark.django_db

SOURCES = Path(__file__).parents[3]


# --- statuses -------------------------------------------------------------------------------------


def test_the_table_of_statuses_is_the_contracts():
    assert {status: set(following) for status, following in TRANSITIONS.items()} == {
        "ACCEPTED": {"SENDING", "BLOCKED", "EXPIRED", "FAILED"},
        "SCHEDULED": {"ACCEPTED", "CANCELLED", "BLOCKED", "EXPIRED"},
        "SENDING": {"SENT", "ACCEPTED", "BLOCKED", "EXPIRED", "FAILED", "UNKNOWN"},
        "SENT": {"DELIVERED", "FAILED", "ACCEPTED"},
        "DELIVERED": {"FAILED"},
        "FAILED": {"DELIVERED"},
        "BLOCKED": set(),
        "CANCELLED": set(),
        "EXPIRED": set(),
        "UNKNOWN": {"SENT", "DELIVERED", "FAILED", "ACCEPTED"},
    }


def test_of_two_statuses_the_earlier_of_the_contracts_list_is_the_messages():
    order = ["SENDING", "SCHEDULED", "UNKNOWN", "DELIVERED", "SENT", "FAILED", "EXPIRED"]
    order += ["CANCELLED", "BLOCKED"]
    for place, first in enumerate(order):
        assert [aggregate([later, first]) for later in order[place:]] == [first] * len(
            order[place:]
        )
        assert aggregate(["ACCEPTED", first]) == "SENDING"
    assert [aggregate([status] * 3) for status in Status] == list(Status)


def _writes_a_status(source):
    """Return whether a file sets a column `status` by Django or by SQL."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    updates = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "update"]
    return (
        any(keyword.arg == "status" for call in updates for keyword in call.keywords)
        or ".bulk_update(" in source
        or re.search(r"UPDATE [^;]{1,80}\bSET\s+status\b", source) is not None
    )


def test_no_other_place_writes_a_status():
    found = [
        str(path.relative_to(SOURCES))
        for folder in ("messaging", "push", "rme")
        for path in sorted((SOURCES / folder).rglob("*.py"))
        if "migrations" not in path.parts and _writes_a_status(path.read_text())
    ]
    assert found == [
        "messaging/accept/idempotency.py",  # the status of an answer
        "messaging/content/drafts.py",  # the texts of template versions
        "messaging/content/publishing.py",  # the columns of template versions, of which none is so
        "messaging/content/templates.py",
        "messaging/models/transitions.py",
        "messaging/policy/domain_checks.py",  # what a check of a sender domain found
        "messaging/webhooks/delivery_log.py",  # the status of a webhook delivery
        "messaging/webhooks/outbox.py",
        "messaging/webhooks/replays.py",
    ]


@pytest.mark.parametrize(
    "kinds", [["open"], ["click"], ["delivered", "open"], ["open", "delivered", "sent"]]
)
def test_an_open_or_click_implies_a_delivery_however_often_it_is_reported(api, org, script, kinds):
    script("mail", Accepted())
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    reported = [receipts.Receipt(delivery().pk, kind) for kind in kinds]
    for _ in range(10):
        receipts.apply(reported)
    last = "click" if "click" in kinds else "open"
    assert events(message_id) == ["accepted", "sent", "delivered", last]
    assert delivery().status == "DELIVERED"


@pytest.mark.parametrize(
    ("kind", "reason"), [("bounced", "HARD_BOUNCE"), ("complained", "COMPLAINT")]
)
def test_a_bounce_or_complaint_reported_later_suppresses_the_address(
    api, org, script, kind, reason
):
    script("mail", Accepted())
    person = factories.contact(org)
    api.send(message(person))
    work()
    receipts.apply([receipts.Receipt(delivery().pk, kind)])
    row = Suppression.objects.get()
    assert (row.channel, row.address, row.reason) == ("EMAIL", person.email, reason)


# --- pauses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paused", "waits"),
    [
        ({}, True),
        ({"channel": "EMAIL"}, True),
        ({"channel": "SMS"}, False),
        ({"category": "TRANSACTIONAL"}, True),
        ({"category": "MARKETING"}, False),
        ({"template": "welcome"}, True),
        ({"template": "other"}, False),
        ({"channel": "EMAIL", "category": "MARKETING"}, False),
        ({"ends_at": datetime(2026, 1, 1, tzinfo=UTC)}, False),
    ],
)
def test_a_pause_holds_what_it_names(api, org, paused, waits):
    Pause.objects.create(organization=org, reason="maintenance", **paused)
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    (recipient,) = api.get(message_id)["recipients"]
    expected = ("ACCEPTED", "PAUSED") if waits else ("DELIVERED", None)
    assert (recipient["status"], recipient["waiting"]) == expected


# --- categories -----------------------------------------------------------------------------------


def test_transactional_and_marketing_are_as_the_contract_has_them():
    shown = {
        name: (rules.opt_in, rules.resend_unknown, rules.expires_after, rules.cap)
        for name, rules in organization_policy.BUILT_IN.items()
    }
    assert shown == {
        "TRANSACTIONAL": (False, True, timedelta(hours=24), None),
        "MARKETING": (True, False, timedelta(hours=4), None),
    }


def test_a_message_expires_by_its_category(api, org):
    Category.objects.create(
        organization=org, name="TRANSACTIONAL", regime="OPT_OUT", expires_after=600
    )
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    row = delivery()
    created = datetime.fromisoformat(api.get(message_id)["createdAt"])
    assert abs(row.expires_at - created - timedelta(seconds=600)) < timedelta(milliseconds=1)


@pytest.mark.django_db(transaction=True)
def test_the_cap_lets_through_again_when_its_window_is_over(api, org):
    Category.objects.create(
        organization=org, name="NEWS", regime="OPT_OUT", cap_count=1, cap_window=3600
    )
    content = {"subject": "News", "text": "All of them"}
    body = message(factories.contact(org), category="NEWS", template=None, content=content)
    assert [api.send(body).status_code for _ in range(2)] == [202, 403]
    for seconds, status in ((3540, 403), (3601, 202)):
        earlier = ids.at_least(clock.now() - timedelta(seconds=seconds))
        Delivery.objects.filter(status="ACCEPTED").update(message_id=earlier)
        assert api.send(body).status_code == status


def test_a_cap_is_looked_at_again_before_it_leaves(api, org, script):
    script("mail", Accepted())
    content = {"subject": "News", "text": "All of them"}
    category = Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    body = message(factories.contact(org), category="NEWS", template=None, content=content)
    assert [api.send(body).status_code for _ in range(3)] == [202] * 3
    category.cap_count = 1
    category.save()
    TtlCache.clear_all()
    work()
    found = Counter(Delivery.objects.values_list("status", "reason"))
    assert found == {("SENT", None): 1, ("BLOCKED", "FREQUENCY_CAPPED"): 2}


# --- fairness -------------------------------------------------------------------------------------


def test_a_small_organization_waits_for_one_claim_of_a_large_one_at_most(api, org):
    other = factories.organization("other")
    factories.template(other)
    people = factories.contacts(org, 500)
    for _ in range(3):
        api.bulk([message(person) for person in people])
    Api(other).send(message(factories.contact(other)))
    served = []
    for _ in range(2):  # rounds
        for priority, organization_id in claims.choose(claims.ready(Channel.EMAIL)):
            window = claims.claim(organization_id, "EMAIL", priority, claims.WINDOW)
            deliver.deliver([window], outbound_transport(), receipts.apply)
            served.append(organization_id)
    assert sorted(served[:2]) == ["acme", "other"]
    assert Attempt.objects.filter(organization_id="other").count() == 1


def test_a_password_reset_goes_before_a_million_news_of_another(api, org):
    other = factories.organization("other")
    factories.template(other)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    factories.template(org, name="news", category="NEWS")
    news = {"category": "NEWS", "template": {"name": "news"}}
    api.bulk([message(person, **news) for person in factories.contacts(org, 300)])
    Api(other).send(message(factories.contact(other)))
    assert claims.ready(Channel.EMAIL) == [(0, "other"), (1, "acme")]
    assert claims.choose(claims.ready(Channel.EMAIL)) == [(0, "other")]


def test_the_oldest_of_a_category_goes_first(api, org, script):
    script("mail", Accepted())
    people = factories.contacts(org, 20)
    for person in people:
        api.send(message(person))
    work()
    assert [to for _, to in Scripted.sent] == [person.email for person in people]


def test_a_page_of_the_history_has_fifty_messages_by_default(api, org):
    people = factories.contacts(org, 51)
    api.bulk([message(person) for person in people])
    assert len(api.call("GET", "/messages").json()["messages"]) == 50
    whole = api.call("GET", "/messages?limit=200").json()
    assert (len(whole["messages"]), whole["nextCursor"]) == (51, None)
    assert "events" not in whole["messages"][0]
