"""The operations home: its numbers are those of REST, and it shows each person only its own."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.content import templates
from messaging.delivery.accounts import circuits
from messaging.models import HourCount, Pause, ProviderAccount, Template, TemplateVersion
from messaging.reports import health
from messaging.statistics import minutes
from messaging.statistics.minutes import hour_of
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outcomes import Misconfigured
from rme.core.redis import heartbeats
from rme.core.redis.heartbeats import Heartbeat
from rme.crm.models import RecordImport
from rme.tenants.models import Organization
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.statistics.scene import attempt, begin, count, delivery, event, run
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
HOME = "/admin/"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def shown(client, **query):
    TtlCache.clear_all()
    answer = client.get(HOME, query)
    assert answer.status_code == 200
    return answer


def figures_of(answer):
    """Return the figures that are not zero: by channel and title."""
    return {
        row.channel: {cell.title: cell.text for cell in row.cells if cell.url}
        for row in answer.context["rows"]
    }


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


def test_figures_add_up_and_equal_those_of_rest(root, api, sent):
    answer = shown(root)
    assert figures_of(answer) == {
        "Email": {"Accepted": "4", "Delivered": "2", "Failed": "1", "Not sent": "1"},
        "SMS": {"Accepted": "1", "Delivered": "1"},
        "All": {"Accepted": "5", "Delivered": "3", "Failed": "1", "Not sent": "1"},
    }
    for row in answer.context["rows"]:
        accepted, *others = (int(cell.text) for cell in row.cells)
        assert accepted == sum(others)
    for status, title in (("DELIVERED", "Delivered"), ("FAILED", "Failed")):
        listed = api.call("GET", f"/messages?status={status}").json()["messages"]
        live = [each for each in listed if not each["test"]]
        assert figures_of(answer)["All"][title] == str(len(live))
    test = shown(root, mode="test")
    assert figures_of(test) == {"SMS": {"Accepted": "1", "Delivered": "1"}}


@pytest.mark.parametrize("span", ["24h", "7d"])
def test_each_figure_is_as_long_as_its_list(root, org, api, sent, span):
    Organization.objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    answer = shown(root, span=span)
    html, checked = unescape(answer.content.decode()), []
    for row in answer.context["rows"]:
        for cell in row.cells:
            if cell.url:
                assert cell.url in html
                checked.append((row.channel, cell.title, cell.text, listed(root, cell.url)))
    assert len(checked) == 10
    assert [each for each in checked if int(each[2]) != each[3]] == []
    for line in answer.context["reasons"]:
        assert listed(root, line.url) == int(line.count) == 1
    assert sorted(line.text for line in answer.context["reasons"]) == [
        "Email, failed: rejected by the provider",
        "Email, not sent: on the suppression list",
    ]


def listed(client, url):
    """Return how many lines a list has."""
    return len(client.get(url).context["lines"])


def test_tiles_compare_with_the_week_before(root, org, sent):
    def tile_texts():
        tiles = shown(root).context["tiles"]
        return {tile.title: (tile.text, tile.note, tile.comparison) for tile in tiles}

    assert tile_texts() == {
        "Accepted": ("5", "", "None a week before"),
        "Delivered or sent": ("75%", "3 delivered, 0 sent", "None a week before"),
        "Failed": ("25%", "1 of 4 tried", "None a week before"),
        "Waiting": ("0", "Nothing ready to send", ""),
    }
    HourCount.objects.create(
        organization_id=org.pk, at=hour_of(clock.now() - 7 * 24 * HOUR), test=False,
        channel="EMAIL", account_id=0, outcome="now_sent", reason="", count=1200,
    )  # fmt: skip
    texts = tile_texts()
    assert texts["Accepted"] == ("5", "", "1,200 a week before")
    assert texts["Delivered or sent"][2] == "100% a week before"
    assert texts["Failed"][2] == "0% a week before"


def test_times_of_the_page_are_in_the_organizations_zone(root, org, sent):
    Organization.objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    text = shown(root).content.decode()
    (start,) = re.findall(r"accepted from (.*?) until .*? \(Asia/Kolkata\)", text)
    assert re.fullmatch(r"\d+ \w+ \d{4}, \d\d:30", start)
    assert "<time" not in text.partition('id="home"')[2].partition("c-fold")[0]
    assert text.count("Asia/Kolkata") == 1


def test_latencies_are_shown_in_words(root, sent):
    email = shown(root).context["rows"][0]
    assert [title for title, _ in email.latencies] == ["Median", "95th percentile"]
    assert all(re.fullmatch(r"[\d.]+ (ms|s)", text) for _, text in email.latencies)


def test_needs_equal_the_findings_of_health(root, org, api):
    ProviderAccount.objects.create(
        organization=org, name="bad", kind="smtp", channel="SMS", credentials="{}", state="PAUSED"
    )
    Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    RecordImport.objects.create(
        organization=org, kind="Contact", name="people.csv", state="DONE", rows=2, done=2,
        rejected=1, finished_at=clock.now(),
    )  # fmt: skip
    answer = shown(root)
    told = api.call("GET", "/health").json()
    findings = sorted(told["configuration"], key=lambda each: each["severity"] != "error")
    details = [check["detail"] for check in told["checks"].values() if check["detail"]]
    needs = [each for each in answer.context["needs"] if each.text not in details]
    assert [(each.text, each.severe) for each in needs] == [
        (each["message"], each["severity"] == "error") for each in findings
    ]
    assert "SMS is paused: maintenance" in [each.text for each in needs]
    html = answer.content.decode()
    for each in answer.context["needs"]:
        assert root.get(each.url).status_code == 200
        assert f">{each.button}</a>" in html
    assert answer.context["state_colour"] == "bad"


def test_provider_that_fails_webhook_that_fails_and_stopped_worker_need_attention(root, org, redis):
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="simulator", channel="EMAIL"
    )
    circuits.report([(row.pk, Misconfigured("key"))])
    since = clock.now() - timedelta(minutes=15, seconds=5)
    hook = endpoint(org, "https://hooks.example.com/", failing_since=since, failures=9)
    answer = shown(root)
    needs = {each.text: (each.severe, each.button, each.url) for each in answer.context["needs"]}
    assert needs["No worker is running, so nothing is sent."][:2] == (True, "See waiting messages")
    assert needs["mail stopped after failures and is being retried."] == (
        True, "See account", url("provider", row.pk),
    )  # fmt: skip
    assert needs[f"The webhook {hook} has been failing for 15 min."] == (
        False, "See webhook", url("webhook_deliveries", hook.pk),
    )  # fmt: skip
    count()
    (strip,) = shown(root).context["strips"]
    assert strip.status == "Failing"


def test_all_is_well_in_one_line(root, org, redis):
    heartbeats.store(Heartbeat("a:1"))
    heartbeats.mark_alive("scheduler")
    for channel in ("EMAIL", "SMS", "PUSH"):
        ProviderAccount.objects.create(
            organization=org, name=channel, kind="simulator", channel=channel
        )
    answer = shown(root)
    assert (answer.context["needs"], answer.context["state"]) == ([], "Everything is working.")
    assert "Needs attention" not in answer.content.decode()


def test_problems_elsewhere_are_one_line_for_each_organization(root, org):
    other = factories.organization("other", simulator=False)
    answer = shown(root, organization=org.pk)
    (need,) = answer.context["elsewhere_needs"]
    assert (need.text, need.button) == ("Other: 3 problems stop sending.", "Open Other")
    assert root.get(need.url).context["organization"].id == other.pk


def test_waiting_messages_show_the_age_of_the_oldest(root, org, api):
    api.bulk([message(each) for each in factories.contacts(org, 3)])
    count()
    tile = shown(root).context["tiles"][-1]
    assert (tile.text, tile.note.partition(" for ")[0]) == ("3", "3 ready, the oldest")
    assert listed(root, tile.url) == 3


def test_line_of_waiting_messages_tells_the_hours_in_which_they_were_accepted(root, org):
    count()
    assert shown(root).context["tiles"][-1].chart is None
    last = hour_of(minutes.read_progress().first_until - MINUTE)
    for age, number in ((1, 2), (3, 1), (7 * 24 + 1, 5)):
        HourCount.objects.create(
            organization_id=org.pk, at=last - age * HOUR, test=False, channel="EMAIL",
            account_id=0, outcome="now_accepted", reason="", count=number,
        )  # fmt: skip
    tile = shown(root).context["tiles"][-1]
    values = [text.partition(": ")[2] for text in tile.chart.texts.split("\n")]
    assert (tile.text, len(values)) == ("3", 24)
    assert values[-4:] == [f"{number} still waiting" for number in (1, 0, 2, 0)]
    assert tile.chart.before == ""


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
    assert (strip.name, strip.status, len(strip.chart.bars)) == ("mail", "Active", 24)
    assert [bar.colour for bar in strip.chart.bars[-8:]] == [
        "none", "none", "bad", "none", "warn", "none", "none", "good",
    ]  # fmt: skip
    assert re.fullmatch(r"Worst hour \d\d:00: 25% of 4 accepted\.", strip.chart.label)
    assert strip.chart.label in unescape(shown(root).content.decode())


def test_empty_states_name_the_next_step(root, org):
    text = shown(root).content.decode()
    assert "Figures appear within two minutes after the workers start." in text
    count()
    text = shown(root).content.decode()
    assert "No messages in this period." in text
    assert f'href="{url("providers")}">Add a provider</a>' in text


def test_superuser_without_organizations_is_invited_to_add_one(root):
    text = shown(root).content.decode()
    assert f'action="{reverse("console:new_organization")}"' in text


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
    ],
)
def test_roles_see_only_their_parts(org, sent, role, sees_figures, sees_needs):
    ProviderAccount.objects.create(organization=org, name="mail", kind="simulator", channel="EMAIL")
    answer = shown(person("p", org, role))
    assert ("rows" in answer.context, "needs" in answer.context) == (sees_figures, sees_needs)
    links = re.findall('href="([^"]+)"', answer.content.decode())
    console = {each for each in links if "/admin/console/" in each}
    assert bool(console - {url("templates"), url("partials")}) is sees_figures
    assert any("/acme/providers/" in each for each in links) is sees_needs


@pytest.mark.parametrize("role", ["TEMPLATE_EDITOR", "APPROVER"])
def test_people_of_templates_see_reviews_alone(org, sent, role):
    client = person("p", org, role)
    assert "Nothing needs your attention." in shown(client).content.decode()
    draft = templates.add_draft(Template.objects.get(channel="EMAIL"), {"subject": "New"})
    TemplateVersion.objects.filter(pk=draft.pk).update(review_by="ada")
    answer = shown(client)
    assert [(each.text, each.button) for each in answer.context["needs"]] == [
        ("1 draft waits for a review.", "Review")
    ]
    assert "rows" not in answer.context


def test_one_organization_is_in_focus_and_no_strangers(root, org, sent):
    other = factories.organization("other")
    event(delivery(clock.now() - MINUTE, organization="other"), "accepted", clock.now() - MINUTE)
    count()
    owner = person("owner", other, "OWNER")
    assert figures_of(shown(owner))["Email"]["Accepted"] == "1"
    assert "Acme" not in shown(owner).content.decode()
    assert owner.get(HOME, {"organization": "acme"}).status_code == 404
    assert root.get(HOME, {"organization": "nobody"}).status_code == 404
    assert root.get(HOME, {"organization": "a\0b"}).status_code == 404
    assert figures_of(shown(root, organization="other"))["Email"]["Accepted"] == "1"
    assert figures_of(shown(root))["Email"]["Accepted"] == "1"  # it is remembered
    root.get(url("messages"))
    assert figures_of(shown(root))["Email"]["Accepted"] == "4"


def test_statements_do_not_grow(root, org):
    found, channels = [], ["Email", "SMS", "Push"]
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
        assert len(answer.context["strips"]) == number
        assert [row.channel for row in answer.context["rows"]][:number] == channels[:number]
        found.append(len(captured))
    assert found == [39, 39]


def test_health_is_read_once_for_the_focus(org, django_assert_num_queries):
    TtlCache.clear_all()
    health.of_organization(org.pk)
    with django_assert_num_queries(0):
        assert health.of_organization(org.pk).organization_id == org.pk
