"""A person's page: what reaches them, what happened, and what can be done."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.models import (
    Category,
    ConsentEntry,
    Delivery,
    Event,
    Message,
    Pause,
    SendingRules,
    Suppression,
)
from rme.core.cache import TtlCache
from rme.tenants.models import Membership, User
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


@pytest.fixture
def ada(org):
    return factories.contact(org)


def see(client, contact):
    found = client.get(url("person", contact.pk))
    assert found.status_code == 200
    return found


def reach(client, contact):
    """Return by channel whether categories reach a person, or why the channel does not."""
    return {
        each.channel: each.refusal
        or {one.category: one.refusal or one.wait_reason or "yes" for one in each.categories}
        for each in see(client, contact).context["channels"]
    }


def test_each_channel_says_whether_it_reaches_the_person(root, org, ada):
    own = {"MARKETING": "no consent", "TRANSACTIONAL": "yes"}
    assert reach(root, ada) == {"EMAIL": own, "SMS": own, "PUSH": "No device."}


def test_reach_shows_the_refusals_of_the_gates(root, org, ada):
    factories.device(org, ada)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", cap_count=1)
    Suppression.objects.create(organization=org, channel="SMS", address=ada.mobile, reason="STOP")
    content = {"subject": "News", "text": "This week"}
    Api(org).send(message(ada, category="NEWS", template=None, content=content))
    listed = "on the suppression list"
    capped = "frequency cap reached"
    own = {"MARKETING": "no consent", "NEWS": capped, "TRANSACTIONAL": "yes"}
    assert reach(root, ada) == {
        "EMAIL": own,
        "SMS": {"MARKETING": listed, "NEWS": listed, "TRANSACTIONAL": listed},
        "PUSH": own,
    }


def test_a_pause_and_quiet_hours_are_shown_as_a_wait(root, org, ada):
    Pause.objects.create(organization=org, channel="EMAIL", reason="maintenance")
    an_hour, now = timedelta(hours=1), datetime.now(UTC)
    hours = {"from": f"{now - an_hour:%H:%M}", "until": f"{now + an_hour:%H:%M}"}
    SendingRules.objects.create(
        organization=org, quiet_hours={"SMS": hours}, quiet_transactional=True
    )
    found = reach(root, ada)
    assert found["EMAIL"]["TRANSACTIONAL"] == "sending is paused"
    assert found["SMS"]["TRANSACTIONAL"].startswith(f"quiet hours until {hours['until']}")


def test_the_timeline_has_messages_opens_consent_suppressions_and_changes(root, org, ada):
    Api(org).send(message(ada))
    work()
    sent = Delivery.objects.get()
    Event.objects.create(
        organization_id=org.pk, message_id=sent.message_id, delivery_id=sent.pk, type="open"
    )
    decision = ledger.ConsentDecision(str(ada.pk), "EMAIL", "ALL", "OPTED_OUT", "ADMIN", NOW)
    ledger.record(org.pk, [decision])
    Suppression.objects.create(organization=org, channel="EMAIL", address=ada.email, reason="STOP")
    form = {"last_name": "Byron", "email": ada.email, "mobile": ada.mobile}
    assert root.post(url("contact_edit", ada.pk), form).status_code == 302
    titles = {each.title for each in see(root, ada).context["moments"]}
    assert titles == {
        "Email: welcome",
        "Opened",
        "Opted out of all email",
        "Suppressed: Email, ada@simulator.rme.test",
        "Changed by root",
    }


def test_equal_neighbours_of_the_timeline_are_one_entry_with_all_links(root, org, ada):
    for minutes in range(5):
        at = NOW - timedelta(minutes=minutes)
        decision = ("EMAIL", "ALL", "OPTED_OUT", "PREFERENCE_PAGE", at)
        ledger.record(org.pk, [ledger.ConsentDecision(str(ada.pk), *decision)])
    shown = see(root, ada).content.decode()
    assert shown.count("<strong>Opted out of all email</strong>") == 1
    assert shown.count("<summary>5 times</summary>") == 1
    links = {url("consent_entry", each.pk) for each in ConsentEntry.objects.all()}
    assert len(links) == 5
    assert [each for each in links if f'href="{each}"' not in shown] == []


def test_page_starts_with_the_message_not_delivered(root, org, ada):
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="COMPLAINT"
    )
    Api(org).send(message(ada))
    text = see(root, ada).context["latest"].explanation.text
    assert text.startswith("Not sent. ada@simulator.rme.test complained on ")
    assert text in see(root, ada).content.decode()


def opened(response):
    """Return the names of the dialogs that a page shows at once."""
    return re.findall(r'<dialog id="(\w+)"[^>]* open', response.content.decode())


def test_forms_open_when_they_are_asked_for_or_have_errors(root, org, ada):
    assert opened(see(root, ada)) == []
    assert opened(root.get(f"{url('person', ada.pk)}?open=opt_in")) == ["opt_in"]
    form = {"form": "opt_out", "channel": "ALL", "category": "ALL", "evidence": ""}
    assert opened(root.post(url("person", ada.pk), form)) == ["opt_out"]


def lines(client, contact):
    """Return the state, the reason and the remedy of each channel of a person."""
    return {
        each.label: (each.state, each.colour, each.reason, each.remedy and each.remedy.text)
        for each in see(client, contact).context["channel_lines"]
    }


def test_each_channel_has_one_line_with_its_reason_and_its_remedy(root, org, ada):
    suppression = Suppression.objects.create(
        organization=org, channel="SMS", address=ada.mobile, reason="STOP"
    )
    decision = ("EMAIL", "MARKETING", "OPTED_OUT", "API", NOW)
    ledger.record(org.pk, [ledger.ConsentDecision(str(ada.pk), *decision)])
    day = f"{NOW.day} {NOW:%b %Y}"
    assert lines(root, ada) == {
        "Email": (
            "Partly reachable", "warn", f"Marketing: opted out by the API on {day}.",
            "Record consent",
        ),
        "SMS": (
            "Not reachable", "bad", f"All categories: answered STOP on {day}.",
            "Lift suppression",
        ),
        "Push": ("Not reachable", "muted", "No device.", None),
    }  # fmt: skip
    assert f'href="{url("lift", suppression.pk)}"' in see(root, ada).content.decode()
    support = lines(person("s", org, Membership.Role.SUPPORT), ada)
    assert [remedy for *_, remedy in support.values()] == [None, None, None]


def test_missing_address_and_paused_channel_have_their_remedies(root, org):
    ada = factories.contact(org, mobile="")
    Category.objects.filter(organization=org).delete()
    Pause.objects.create(organization=org, channel="EMAIL", reason="maintenance")
    assert lines(root, ada)["SMS"] == ("Not reachable", "muted", "No address.", "Add address")
    state, _, reason, remedy = lines(root, ada)["Email"]
    assert (state, remedy) == ("Waiting", "Record consent")
    assert "Transactional: sending is paused." in reason


def test_header_has_addresses_language_and_local_time(root, org):
    ada = factories.contact(org, language="de_CH", zone="Asia/Tokyo")
    about = see(root, ada).context["about"]
    assert about.startswith(f"{ada.email} · {ada.mobile} · German (Switzerland) · ")
    assert about.endswith(" in Tokyo")
    assert ada.email not in re.findall("<title>(.*)</title>", see(root, ada).content.decode())[0]


def test_each_tab_shows_its_part(root, org, ada):
    Api(org).send(message(ada))
    factories.device(org, ada)
    decision = ledger.ConsentDecision(str(ada.pk), "EMAIL", "ALL", "OPTED_OUT", "ADMIN", NOW)
    ledger.record(org.pk, [decision])
    shown = {
        tab: root.get(f"{url('person', ada.pk)}?tab={tab}").context
        for tab in ("messages", "consent", "devices", "record", "nonsense")
    }
    assert [line.subject for line in shown["messages"]["lines"]] == ["welcome"]
    assert [words for _, words, _, _ in shown["consent"]["decisions"]] == ["Opted out of all email"]
    assert [each.contact_id for each in shown["devices"]["devices"]] == [str(ada.pk)]
    assert shown["record"]["fields"][0] == ("Contact id", str(ada.pk))
    assert len(shown["nonsense"]["moments"]) == 2


def test_an_opt_out_is_recorded_with_its_evidence(root, org, ada):
    form = {"form": "opt_out", "channel": "ALL", "category": "ALL", "evidence": "by phone"}
    done = root.post(url("person", ada.pk), form)
    assert (done.status_code, done["Location"]) == (302, url("person", ada.pk))
    entry = ConsentEntry.objects.get()
    assert (entry.status, entry.source, entry.evidence, entry.recorded_by) == (
        "OPTED_OUT", "ADMIN", {"note": "by phone"}, "root",
    )  # fmt: skip
    assert audited.summaries() == [("root", "CONSENT", "OPTED_OUT")]
    assert "evidence: – → by phone" in audited.lines()


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"evidence": ""}, "evidence"),
        ({"kind": ""}, "kind"),
        ({"kind": "HEARSAY"}, "kind"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"ip": "300.1.1.1"}, "ip"),
        ({"channel": ""}, "channel"),
        ({"category": ""}, "category"),
        ({"category": "NOTHING"}, "category"),
        ({"occurred_at": f"{NOW + timedelta(days=2):%Y-%m-%dT%H:%M}"}, "occurred_at"),
    ],
)
def test_invalid_decision_is_an_error_at_its_field(root, org, ada, fields, wrong):
    form = {
        "form": "opt_in", "channel": "EMAIL", "category": "MARKETING", "evidence": "a letter",
        "kind": "WRITTEN",
    }  # fmt: skip
    shown = root.post(url("person", ada.pk), {**form, **fields})
    forms = {name: form for form, name, *_ in shown.context["forms"]}
    assert set(forms["opt_in"].errors) == {wrong}
    assert not ConsentEntry.objects.exists()


def test_consent_is_recorded_with_all_its_evidence(root, org, ada):
    evidence = {"kind": "WEB_FORM", "url": "https://acme.example/join", "ip": "192.0.2.7"}
    form = {"form": "opt_in", "channel": "EMAIL", "category": "MARKETING", "evidence": "Footer"}
    assert root.post(url("person", ada.pk), {**form, **evidence}).status_code == 302
    assert ConsentEntry.objects.get().evidence == {**evidence, "note": "Footer"}
    words = "web form, Footer, https://acme.example/join, from 192.0.2.7"
    assert f"in the console, root, {words}" in see(root, ada).content.decode()
    assert f"evidence: – → {words}" in audited.lines()
    support = see(person("s", org, Membership.Role.SUPPORT), ada).content.decode()
    assert "in the console, root, web form" in support
    assert "192.0.2.7" not in support


def test_consent_has_no_preselected_choice(root, org, ada):
    forms = {name: form for form, name, *_ in see(root, ada).context["forms"]}
    assert [forms["opt_in"].fields[name].choices[0][0] for name in ("channel", "category")] == [
        "", "",
    ]  # fmt: skip


def test_page_leads_to_sending_and_sends_nothing_itself(root, org, ada):
    shown = see(root, ada).content.decode()
    assert f'href="{url("send")}?recipient={ada.pk}">Send message</a>' in shown
    assert "Send a test" not in shown
    root.post(url("person", ada.pk), {"form": "send_test", "template": "SMS welcome"})
    assert not Message.objects.exists()
    support = person("s", org, Membership.Role.SUPPORT)
    assert "Send message" not in see(support, ada).content.decode()


def test_a_suppression_is_lifted_with_a_reason(root, org, ada):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="COMPLAINT"
    )
    lift = url("lift", row.pk)
    assert lift in root.get(f"{url('person', ada.pk)}?tab=consent").content.decode()
    assert root.post(lift, {"why": ""}).status_code == 200
    assert Suppression.objects.exists()
    assert root.post(lift, {"why": "asked to"}).status_code == 302
    assert not Suppression.objects.exists()
    lines = audited.lines()
    assert "reason: asked to" in lines
    assert f"address: {ada.email} → –" in lines


def test_the_support_role_may_look_but_not_act(org, ada):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="COMPLAINT"
    )
    support = person("s", org, Membership.Role.SUPPORT)
    shown = see(support, ada)
    assert shown.context["forms"] == []
    assert ada.email not in shown.content.decode()
    assert ada.mobile not in shown.content.decode()
    form = {"form": "opt_out", "channel": "ALL", "category": "ALL", "evidence": "by phone"}
    assert support.post(url("person", ada.pk), form).status_code == 403
    assert support.get(url("lift", row.pk)).status_code == 403


def test_person_of_another_organization_is_not_found(root, org, ada):
    other = factories.organization("other")
    stranger = person("s", other, Membership.Role.OWNER)
    assert stranger.get(url("person", ada.pk)).status_code == 404
    assert stranger.get(url("person", ada.pk, org="other")).status_code == 404
    assert root.get(url("person", "nobody")).status_code == 404


def test_former_log_is_shown_in_the_organization_of_its_contact_alone(root, org, ada):
    LogEntry.objects.create(
        user=User.objects.get(), content_type=ContentType.objects.get_for_model(type(ada)),
        object_id=str(ada.pk), object_repr="Ada", action_flag=2,
        change_message='[{"values": {"email": ["", "ada@x.example"]}}]',
    )  # fmt: skip
    other = factories.organization("other")
    decision = (str(ada.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(other.pk, [ledger.ConsentDecision(*decision)])
    owner = person("s", other, Membership.Role.OWNER)
    shown = owner.get(url("person", ada.pk, org="other"))
    assert [each.title for each in shown.context["moments"]] == ["Opted in to marketing email"]
    assert "email: – → ada@x.example" in see(root, ada).content.decode()


def test_deleted_contact_keeps_its_history(root, org, ada):
    Api(org).send(message(ada))
    type(ada).objects.all().delete()
    shown = see(root, ada)
    assert [each.title for each in shown.context["moments"]] == ["Email: welcome"]
    assert "This contact was deleted. Its history stays here." in shown.content.decode()


def test_a_page_asks_as_often_for_20_messages_as_for_2(root, org, ada):
    api, counts = Api(org), []
    for count in (2, 18):
        for _ in range(count):
            api.send(message(ada))
        see(root, ada)  # the session keeps the organization
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            see(root, ada)
        counts.append(len(captured))
    assert counts == [22, 22]
