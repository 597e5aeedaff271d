"""One decision about each account, webhook and backlog: Home, lanes, account pages, health and
metrics all show it.
"""

from datetime import timedelta

import pytest
from django.urls import reverse

from messaging.domain.attention import LATE, Severity
from messaging.models import Attempt, Delivery, ProviderAccount
from messaging.reports import metrics
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock, sql
from tests import factories
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import message
from tests.scrape import labels, samples

pytestmark = pytest.mark.django_db
ERROR, WARNING = Severity.ERROR.value, Severity.WARNING.value


def attempts(row, **outcomes):
    """Write attempts of an account, the first outcome the oldest."""
    rows = [
        {
            "id": ids.new_id(),
            "organization_id": row.organization_id,
            "message_id": ids.new_id(),
            "delivery_id": ids.new_id(),
            "fence": 1,
            "channel": row.channel,
            "provider": row.name,
            "account_id": row.pk,
            "outcome": outcome,
            "started_at": clock.now(),
        }
        for outcome, count in outcomes.items()
        for _ in range(count)
    ]
    sql.insert({Attempt: rows})


@pytest.mark.parametrize(
    ("fields", "code", "state"),
    [
        ({"failing_since": timedelta(minutes=9)}, None, None),
        ({"failing_since": timedelta(minutes=15)}, "WEBHOOK_FAILING", "failing"),
        (
            {"enabled": False, "disabled_reason": "It failed for five days."},
            "WEBHOOK_DISABLED",
            "disabled",
        ),
    ],
    ids=["failing-for-a-moment", "failing", "disabled"],
)
def test_every_page_says_the_same_of_a_webhook(root, org, api, redis, fields, code, state):
    if age := fields.get("failing_since"):
        fields = {"failing_since": clock.now() - age, "failures": 5}
    row = endpoint(org, "https://hooks.example.com/", **fields)
    TtlCache.clear_all()
    home = root.get(reverse("admin:index"), {"organization": org.pk}).context
    needs = [need.text for need in home["needs"] if str(row) in need.text]
    found = [
        each for each in api.call("GET", "/health").json()["configuration"]
        if each["code"].startswith("WEBHOOK")
    ]  # fmt: skip
    assert [each["code"] for each in found] == ([code] if code else [])
    assert needs == [each["message"] for each in found]
    counts = {labels(state=each): int(each == state) for each in ("failing", "disabled")}
    assert samples("rme_webhook_endpoints") == counts


@pytest.mark.parametrize("priority", [0, 1])
@pytest.mark.parametrize("is_late", [False, True], ids=["in-time", "late"])
def test_every_page_says_the_same_of_a_backlog(root, org, api, redis, priority, is_late):
    api.send(message(factories.contact(org)))
    margin = timedelta(seconds=20 if is_late else -20)
    Delivery.objects.update(due_at=clock.now() - LATE[priority] - margin, priority=priority)
    TtlCache.clear_all()
    home = root.get(reverse("admin:index"), {"organization": org.pk}).context
    needs = [need.text for need in home["needs"] if "waiting to be sent" in need.text]
    found = [
        each["message"] for each in api.call("GET", "/health").json()["configuration"]
        if each["code"] == "BACKLOG_LATE"
    ]  # fmt: skip
    assert (needs, len(found)) == (found, int(is_late))
    late = {each for each, value in samples("rme_deliveries_late").items() if value}
    assert late == ({labels(channel="EMAIL", priority=str(priority))} if is_late else set())


@pytest.mark.parametrize("count", [1, 12])
def test_a_scrape_needs_the_same_statements_for_any_number(
    org, redis, count, django_assert_num_queries
):
    organizations = [org, *(factories.organization(f"o{number}") for number in range(count))]
    for organization in organizations:
        row = ProviderAccount.objects.create(
            organization=organization, name="mail", kind="simulator", channel="EMAIL"
        )
        attempts(row, Accepted=1, Retryable=9)
        endpoint(organization, "https://hooks.example.com/", failing_since=clock.now())
    list(metrics.collect())
    with django_assert_num_queries(7):
        families = {family.name: family for family in metrics.collect()}
    counts = {
        each.labels["severity"]: each.value for each in families["rme_account_problems"].samples
    }
    assert counts == {"error": count + 1, "warning": 0}
