"""One decision about each account, webhook and backlog: Home, lanes, account pages, health and
metrics all show it.
"""

from datetime import timedelta

import pytest
from django.urls import reverse

from messaging.delivery.accounts import circuits
from messaging.domain.attention import LATE, Severity
from messaging.models import Attempt, CountedUntil, Delivery, ProviderAccount
from messaging.reports import metrics
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock, sql
from rme.core.outcomes import Unknown
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


def open_circuit(row, settings, seconds):
    settings.CIRCUIT_OPEN_SECONDS = seconds
    settings.CIRCUIT_SENDS = 1
    circuits.report([(row.pk, Unknown("no answer"))])


def pages(root, api, row):
    """Return what each page says of an account: its status, and what is wrong with it."""
    TtlCache.clear_all()
    organization = row.organization_id
    home = root.get(reverse("admin:index"), {"organization": organization}).context
    lanes = root.get(reverse("console:providers", args=[organization])).context["lanes"]
    account = root.get(reverse("console:provider", args=[organization, row.pk])).context
    health = api.call("GET", "/health").json()
    (card,) = (card for lane, *_ in lanes for card in lane.cards)
    (status,) = (each["status"] for each in health["providers"] if each["name"] == row.name)
    problems = [each for each in health["configuration"] if row.name in each["message"]]
    (strip,) = home["strips"]
    return {
        "status": status,
        "words": {strip.status, card.state[0], account["state_words"]},
        "colours": {strip.colour, card.state[1], account["state_colour"]},
        "sentences": {
            card.problem,
            account["problem"],
            *(each["message"] for each in problems or [{"message": ""}]),
            *([need.text for need in home["needs"] if row.name in need.text] or [""]),
        },
        "severities": {
            *(each["severity"] for each in problems),
            *(ERROR if n.severe else WARNING for n in home["needs"] if row.name in n.text),
            *(
                dict(each)["severity"]
                for each, count in samples("rme_account_problems").items()
                if count
            ),
        },
    }


STATES = {
    "well": (lambda row, _: attempts(row, Accepted=20), "ok", "Active", "good", None, ""),
    "one-of-ten-fails": (
        lambda row, _: attempts(row, Accepted=9, Unknown=1), "degraded", "Partly failing", "warn",
        WARNING, "relay is failing: its provider accepted 9 of 10 attempts in the last hour.",
    ),
    "nearly-all-fail": (
        lambda row, _: attempts(row, Accepted=9, Retryable=881), "down", "Failing", "bad",
        ERROR, "relay is failing: its provider accepted 9 of 890 attempts in the last hour.",
    ),
    "circuit-open": (
        lambda row, settings: open_circuit(row, settings, 600), "down", "Failing", "bad",
        ERROR, "relay stopped after failures and is being retried.",
    ),
    "circuit-half-open": (
        lambda row, settings: open_circuit(row, settings, 0.001), "degraded", "Partly failing",
        "warn", WARNING, "relay stopped after failures and is being retried.",
    ),
    "refused": (
        lambda row, _: attempts(row, Accepted=99, Misconfigured=1), "down", "Failing", "bad",
        ERROR, "The provider of relay refuses its settings. Correct them.",
    ),
    "broken": (
        lambda row, _: ProviderAccount.objects.update(kind="smtp"), "down", "Failing", "bad",
        ERROR, "The settings of relay can't be read. Save them again.",
    ),
    "paused": (
        lambda row, _: ProviderAccount.objects.update(state="PAUSED"), "paused", "Paused", "warn",
        None, "",
    ),
    "draining": (
        lambda row, _: ProviderAccount.objects.update(state="DRAINING"), "draining", "Draining",
        "warn", None, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "status", "words", "colour", "severity", "sentence"), STATES.values(), ids=STATES
)
def test_every_page_says_the_same_of_an_account(
    root, org, api, redis, settings, cause, status, words, colour, severity, sentence
):
    row = ProviderAccount.objects.create(
        organization=org, name="relay", kind="simulator", channel="EMAIL"
    )
    now = clock.now()  # Home has figures once minutes were counted
    CountedUntil.objects.create(first_until=now, final_until=now)
    cause(row, settings)
    assert pages(root, api, row) == {
        "status": status,
        "words": {words},
        "colours": {colour},
        "sentences": {sentence},
        "severities": {severity} if severity else set(),
    }


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
