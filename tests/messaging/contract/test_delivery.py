"""The contract's rules for statuses, pauses, categories and fairness."""

import ast
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from messaging.delivery import claims, deliver
from messaging.domain.accounts.admission import WINDOW
from messaging.domain.channels import Channel
from messaging.domain.policy import BUILT_IN
from messaging.domain.statuses import TRANSITIONS, Status, aggregate
from messaging.feedback import receipts
from messaging.models import Attempt, Category, Delivery, Pause, Suppression
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.outcomes import Accepted
from tests import factories
from tests.messaging.delivery.deliver_scene import Scripted, delivery
from tests.rest import Api, events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db

SOURCES = Path(__file__).parents[3]


# --- statuses -------------------------------------------------------------------------------------


@pytest.mark.promise("events-4")
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


@pytest.mark.promise("events-7")
def test_message_status_is_the_first_of_its_deliveries_in_contract_order():
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


@pytest.mark.promise("events-5")
def test_no_other_place_writes_a_status():
    found = [
        str(path.relative_to(SOURCES))
        for folder in ("messaging", "push", "rme")
        for path in sorted((SOURCES / folder).rglob("*.py"))
        if "migrations" not in path.parts and _writes_a_status(path.read_text())
    ]
    assert found == [
        "messaging/content/drafts.py",  # the texts of template versions
        "messaging/content/partials.py",  # the columns of partials and their versions
        "messaging/content/publishing.py",  # the columns of template versions, of which none is so
        "messaging/content/templates.py",
        "messaging/policy/domain_checks.py",  # what a check of a sender domain found
        "messaging/store/idempotency.py",  # the status of an answer
        "messaging/store/transitions.py",
        "messaging/store/webhooks/claims.py",  # the status of a webhook delivery
        "messaging/store/webhooks/replays.py",
        "messaging/webhooks/delivery_log.py",
        "messaging/webhooks/replays.py",
        "rme/tenants/access/limits/guess_limits.py",  # how often somebody guessed
    ]


@pytest.mark.promise("events-6", "reliability-9")
@pytest.mark.parametrize(
    "kinds", [["open"], ["click"], ["delivered", "open"], ["open", "delivered", "sent"]]
)
def test_repeated_opens_and_clicks_imply_one_delivery(api, org, script, kinds):
    script("mail", Accepted())
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    reported = [receipts.Receipt(delivery().pk, kind) for kind in kinds]
    for _ in range(10):
        receipts.apply(reported)
    last = "click" if "click" in kinds else "open"
    assert events(message_id) == ["accepted", "sent", "delivered", last]
    assert delivery().status == "DELIVERED"


@pytest.mark.promise("suppressions-5")
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


@pytest.mark.promise("gates-9")
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
def test_pause_holds_only_matching_messages(api, org, paused, waits):
    Pause.objects.create(organization=org, reason="maintenance", **paused)
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    (recipient,) = api.get(message_id)["recipients"]
    expected = ("ACCEPTED", "PAUSED") if waits else ("DELIVERED", None)
    assert (recipient["status"], recipient["waiting"]) == expected


# --- categories -----------------------------------------------------------------------------------


@pytest.mark.promise("request-8", "routes-19")
def test_transactional_and_marketing_are_as_the_contract_has_them():
    shown = {
        name: (rules.opt_in, rules.resend_unknown, rules.expires_after, rules.cap)
        for name, rules in BUILT_IN.items()
    }
    assert shown == {
        "TRANSACTIONAL": (False, True, timedelta(hours=24), None),
        "MARKETING": (True, False, timedelta(hours=4), None),
    }


@pytest.mark.promise("routes-19")
def test_a_message_expires_by_its_category(api, org):
    Category.objects.create(
        organization=org, name="TRANSACTIONAL", regime="OPT_OUT", expires_after=600
    )
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    row = delivery()
    created = datetime.fromisoformat(api.get(message_id)["createdAt"])
    assert abs(row.expires_at - created - timedelta(seconds=600)) < timedelta(milliseconds=1)


@pytest.mark.promise("gates-8")
@pytest.mark.django_db(transaction=True)
def test_cap_allows_messages_again_after_its_window(api, org):
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


@pytest.mark.promise("gates-8")
def test_cap_is_checked_again_before_sending(api, org, script):
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


@pytest.mark.promise("faults-19")
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
            window = claims.claim(organization_id, "EMAIL", priority, WINDOW)
            deliver.deliver([window], outbound_transport(), PROCESS, receipts.apply)
            served.append(organization_id)
    assert sorted(served[:2]) == ["acme", "other"]
    assert Attempt.objects.filter(organization_id="other").count() == 1


@pytest.mark.promise("faults-20")
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


@pytest.mark.promise("faults-12")
def test_the_oldest_of_a_category_goes_first(api, org, script):
    script("mail", Accepted())
    people = factories.contacts(org, 20)
    for person in people:
        api.send(message(person))
    work()
    assert [to for _, to in Scripted.sent] == [person.email for person in people]


@pytest.mark.promise("events-13")
def test_a_page_of_the_history_has_fifty_messages_by_default(api, org):
    people = factories.contacts(org, 51)
    api.bulk([message(person) for person in people])
    assert len(api.call("GET", "/messages").json()["messages"]) == 50
    whole = api.call("GET", "/messages?limit=200").json()
    assert (len(whole["messages"]), whole["nextCursor"]) == (51, None)
    assert "events" not in whole["messages"][0]
