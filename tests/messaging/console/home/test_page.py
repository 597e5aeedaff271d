"""The operations home: its numbers are those of REST, and it shows each person only its own."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Pause, ProviderAccount
from messaging.reports import health
from messaging.statistics.minutes import hour_of
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.tenants.models import Organization
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.statistics.scene import attempt, begin, count, delivery, event, run
from tests.rest import Api, message, work
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
HOME = "/admin/"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def shown(client, **query):
    TtlCache.clear_all()
    answer = client.get(HOME, query)
    assert answer.status_code == 200
    return answer


def figures_of(answer, span="1 h"):
    """Return the figures of a span: by channel, name and text."""
    return {
        card.channel: {
            name: cell.text for name, cells in card.rows for cell in cells if cell.span == span
        }
        for card in answer.context["cards"]
    }


def counts(card):
    return {name: text for name, text in card.items() if "within" not in name}


@pytest.fixture
def sent(org, api):
    """Send by two channels, with one refusal and one bounce; count it."""
    ada = factories.contact(org)
    gone = factories.contact(org, email="bounce@simulator.rme.test")
    for channel in ("EMAIL", "EMAIL", "SMS"):
        api.send(message(ada, channel=channel))
    api.send(message(gone))
    work()
    org.suppression_set.create(channel="EMAIL", address=ada.email, reason="STOP")
    api.send(message(ada))
    Api(org, mode="TEST").send(message(ada, channel="SMS"))
    work()
    count()


def test_numbers_equal_those_of_the_message_history(root, api, sent):
    answer = shown(root)
    cards = {channel: counts(card) for channel, card in figures_of(answer).items()}
    assert cards == {
        "EMAIL": {"Accepted": "3", "Delivered": "2", "Failed": "1", "Not sent": "1"},
        "SMS": {"Accepted": "1", "Delivered": "1", "Failed": "0", "Not sent": "0"},
    }
    for status, name in (("DELIVERED", "Delivered"), ("FAILED", "Failed"), ("BLOCKED", "Not sent")):
        for channel, card in cards.items():
            listed = api.call("GET", f"/messages?status={status}&channel={channel}").json()
            live = [each for each in listed["messages"] if not each["test"]]
            assert (status, channel, card[name]) == (status, channel, str(len(live)))
    test = shown(root, mode="test")
    assert {channel: counts(card) for channel, card in figures_of(test).items()} == {
        "SMS": {"Accepted": "1", "Delivered": "1", "Failed": "0", "Not sent": "0"}
    }


def test_each_number_links_to_its_list(root, sent):
    answer = shown(root)
    links = {
        (card.channel, name): (cell.text, cell.url)
        for card in answer.context["cards"]
        for name, cells in card.rows
        for cell in cells
        if cell.url and cell.span == "24 h"
    }
    assert set(links) == {
        *(("EMAIL", name) for name in ("Accepted", "Delivered", "Failed", "Not sent")),
        *(("SMS", name) for name in ("Accepted", "Delivered")),
    }
    found = {}
    for key, (text, link) in links.items():
        assert unescape(link) in unescape(answer.content.decode())
        found[key] = len(root.get(link).context["lines"]) - int(text)
    # The list of what was accepted on a channel has what was refused there, too.
    assert found == dict.fromkeys(links, 0) | {("EMAIL", "Accepted"): 1}
    for line in answer.context["reasons"]:
        assert len(root.get(line.url).context["lines"]) == int(line.count) == 1
    assert sorted(line.text for line in answer.context["reasons"]) == [
        "EMAIL, failed: no provider took it",
        "EMAIL, not sent: on the suppression list",
    ]


def test_latencies_are_shown_in_words(root, sent):
    texts = figures_of(shown(root))["EMAIL"]
    assert re.fullmatch(r"[\d.]+ (ms|s)", texts["Half within"])
    assert figures_of(shown(root), "7 d")["SMS"]["95 % within"] != "–"


def test_needs_equal_the_findings_of_health(root, org, api):
    ProviderAccount.objects.create(
        organization=org, name="bad", kind="smtp", channel="SMS", credentials="{}", state="PAUSED"
    )
    Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    answer = shown(root)
    told = api.call("GET", "/health").json()
    findings = sorted(told["configuration"], key=lambda each: each["severity"] != "error")
    needs = [each for each in answer.context["needs"] if each.url]
    assert [(each.text, each.severe) for each in needs] == [
        (f"Acme: {each['message']}", each["severity"] == "error") for each in findings
    ]
    broken = [name for name, check in told["checks"].items() if check["detail"]]
    without_page = [each.text for each in answer.context["needs"] if not each.url]
    assert [text.partition(":")[0].lower() for text in without_page] == broken
    for each in needs:
        assert root.get(each.url).status_code == 200
    assert [each.text for each in answer.context["pauses"]] == ["Acme: Pause of SMS: maintenance"]


def test_backlog_shows_the_age_of_its_oldest_message(root, org, api):
    api.bulk([message(each) for each in factories.contacts(org, 3)])
    (line,) = shown(root).context["backlog"]
    assert (line.count, line.text.partition(" for ")[0]) == ("3", "EMAIL: the oldest")
    assert len(root.get(line.url).context["lines"]) == 3


def test_an_accounts_hours_are_coloured_by_success(root, org):
    account = ProviderAccount.objects.create(
        organization=org, name="mail", kind="simulator", channel="EMAIL"
    )
    last = hour_of(clock.now()) - HOUR  # wholly over, whatever the minute is
    for hours, outcomes in ((0, "AAAA"), (3, "AAR"), (5, "ARRR"), (7, "G")):
        at = last - hours * HOUR
        row = delivery(at, organization=org.pk)
        for letter in outcomes:
            name = {"A": "Accepted", "R": "Retryable", "G": "Gone"}[letter]
            attempt(row, name, at, account_id=account.pk)
    begin(last - 8 * HOUR)
    run(last + HOUR + timedelta(seconds=30))
    (strip,) = shown(root).context["strips"]
    assert (strip.name, strip.status, len(strip.chart.bars)) == ("mail", "Sends", 24)
    assert [bar.colour for bar in strip.chart.bars[-8:]] == [
        "none", "none", "bad", "none", "warn", "none", "none", "good",
    ]  # fmt: skip
    assert strip.chart.label.startswith("1 of 3 hours with attempts at 95% or more; the worst at ")
    assert strip.chart.label.endswith(": 25% of 4.")
    assert strip.chart.label in unescape(shown(root).content.decode())


def test_empty_states_name_the_next_step(root, org):
    text = shown(root).content.decode()
    assert "No minute was counted yet." in text
    count()
    text = shown(root).content.decode()
    assert "Nothing was sent in the two weeks until <time " in text
    assert "Later messages are counted\n    within two minutes." in text
    assert "No messages are waiting." in text
    assert "/admin/console/providers/" in text


def test_superuser_without_organizations_is_invited_to_add_one(root):
    text = shown(root).content.decode()
    assert f'<a href="{page(Organization, "add")}">Add the first one</a>' in text


def test_late_figures_are_marked(root, sent):
    assert not shown(root).context["is_late"]
    begin(clock.now() - timedelta(hours=1))
    assert "The figures are late" in shown(root).content.decode()


@pytest.mark.parametrize(
    ("role", "sees_figures", "sees_needs"),
    [
        ("OWNER", True, True),
        ("OPERATOR", True, True),
        ("VIEWER", True, True),
        ("DEVELOPER", True, True),
        ("SUPPORT", True, False),
        ("TEMPLATE_EDITOR", False, False),
        ("APPROVER", False, False),
    ],
)
def test_roles_see_only_their_parts(org, sent, role, sees_figures, sees_needs):
    ProviderAccount.objects.create(organization=org, name="mail", kind="simulator", channel="EMAIL")
    answer = shown(person("p", org, role))
    assert ("cards" in answer.context, "needs" in answer.context) == (sees_figures, sees_needs)
    links = re.findall('href="([^"]+)"', answer.content.decode())
    console = {each for each in links if "/admin/console/" in each}
    assert bool(console - {url("templates"), url("partials")}) is sees_figures
    assert any("/acme/providers/" in each for each in links) is sees_needs


def test_one_organization_is_in_focus_and_no_strangers(root, org, sent):
    other = factories.organization("other")
    event(delivery(clock.now() - MINUTE, organization="other"), "accepted", clock.now() - MINUTE)
    count()
    owner = person("owner", other, "OWNER")
    assert figures_of(shown(owner))["EMAIL"]["Accepted"] == "1"
    assert "Acme" not in shown(owner).content.decode()
    assert owner.get(HOME, {"organization": "acme"}).status_code == 404
    assert root.get(HOME, {"organization": "nobody"}).status_code == 404
    assert root.get(HOME, {"organization": "a\0b"}).status_code == 404
    assert figures_of(shown(root, organization="other"))["EMAIL"]["Accepted"] == "1"
    assert figures_of(shown(root))["EMAIL"]["Accepted"] == "1"  # it is remembered
    root.get(url("messages"))
    assert figures_of(shown(root))["EMAIL"]["Accepted"] == "3"


def test_statements_do_not_grow(root, org):
    found = []
    now = clock.now().replace(second=0, microsecond=0) - 2 * MINUTE
    for number in (1, 3):
        for channel in ("EMAIL", "SMS", "PUSH")[:number]:
            account, _ = ProviderAccount.objects.get_or_create(
                organization=org, name=channel, channel=channel, defaults={"kind": "simulator"}
            )
            row = delivery(now, organization=org.pk, channel=channel, account_id=account.pk)
            for kind in ("accepted", "sent", "failed"):
                event(row, kind, now)
            attempt(row, "Accepted", now, account_id=account.pk)
        for i in range(number):
            factories.organization(f"other{number}x{i}")
        count()
        root.get(HOME)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            answer = root.get(HOME)
        assert len(answer.context["cards"]) == len(answer.context["strips"]) == number
        found.append(len(captured))
    assert found == [37, 37]


def test_health_is_read_once_for_the_focus(org, django_assert_num_queries):
    TtlCache.clear_all()
    health.of_organization(org.pk)
    with django_assert_num_queries(0):
        assert health.of_organization(org.pk).organization_id == org.pk
