"""A message's page: one sentence, the timeline, the content, and what can be done."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.models import (
    Attempt,
    Category,
    Delivery,
    Event,
    Message,
    MessageContent,
    Suppression,
)
from rme.core import ids
from rme.core.cache import TtlCache
from rme.crm.models import Contact
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, all_events, instant, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
CONTENT = {"subject": "News", "text": "This week"}
TODAY = datetime.now(UTC)


def on(moment):
    """Return the day of a moment as the page has it: the tests may begin on the day before."""
    return f"{moment.day} {moment:%b %Y}"


def news(contact, **fields):
    """Return a message of literal content, which any category may have."""
    return message(contact, template=None, content=CONTENT, **fields)


def open_page(client, query=""):
    """Return the response of the only message's page."""
    return client.get(url("message", Message.objects.get().pk) + query)


def sentence(client):
    """Return the sentence with which the only message's page begins, and its links."""
    found = open_page(client)
    assert found.status_code == 200
    explanation = found.context["explanation"]
    return found.context["headline"].text, [link.text for link in explanation.links]


def test_a_delivered_message(root, org):
    Api(org).send(message(factories.contact(org)))
    work()
    text, links = sentence(root)
    (delivered,) = all_events("delivered")
    assert text.startswith(f"Delivered on {on(delivered.at)}, ")
    assert links == []


def test_suppressed_address_shows_who_complained_and_when(root, org):
    ada = factories.contact(org)
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="COMPLAINT"
    )
    Api(org).send(message(ada))
    assert sentence(root) == (
        f"Not sent. {ada.email} complained on {on(row.created_at)}. "
        "Lift the suppression to send again.",
        ["Lift suppression", "Open person"],
    )
    explanation = open_page(root).context["explanation"]
    assert [link.asks for link in explanation.links] == [True, False]
    row.delete()
    assert sentence(root) == (
        "Not sent. The recipient was suppressed at that time, but isn't any more.",
        ["Open person"],
    )


def test_missing_consent_shows_the_opt_out(root, org):
    Category.objects.create(organization=org, name="NEWS")
    ada = factories.contact(org)
    decided = ledger.ConsentDecision(str(ada.pk), "ALL", "NEWS", "OPTED_OUT", "ONE_CLICK", TODAY)
    ledger.record(org.pk, [decided])
    Api(org).send(news(ada, category="NEWS"))
    expected = "Opted out of news messages by one click in a message on"
    assert sentence(root) == (f"Not sent. {expected} {on(TODAY)}.", ["Open person"])


def test_consent_never_given_is_shown(root, org):
    Api(org).send(news(factories.contact(org), category="MARKETING"))
    assert sentence(root)[0] == "Not sent. The person never opted in to marketing messages."


def test_reached_cap_is_shown(root, org):
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", cap_count=1)
    ada, api = factories.contact(org), Api(org)
    api.send(news(ada, category="NEWS"))
    Message.objects.all().delete()
    api.send(news(ada, category="NEWS"))
    text = "Not sent. The frequency cap of the category News is reached."
    assert sentence(root) == (text, ["Open categories"])


def test_a_person_without_an_address(root, org):
    Api(org).send(message(factories.contact(org, email="")))
    text = "Not sent. The person has no address or device on these channels."
    assert sentence(root)[0] == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"status": "FAILED", "reason": "PROVIDER_ERROR", "detail": "550 no"},
            "Failed: rejected by the provider: 550 no.",
        ),
        (
            {
                "status": "FAILED",
                "reason": "PROVIDER_ERROR",
                "detail": "No provider account for email.",
            },
            "Failed: rejected by the provider: No provider account for email.",
        ),
        (
            {"status": "EXPIRED", "reason": None},
            "Not sent: it expired.",
        ),
        (
            {"status": "UNKNOWN", "due_at": None, "provider": "sim"},
            "sim didn't answer, so the message may or may not have arrived.",
        ),
        ({"status": "ACCEPTED", "waiting": "PAUSED"}, "Waiting: sending is paused."),
        ({"status": "SENDING"}, "Being sent to the provider now."),
    ],
)
def test_each_status_has_its_sentence(root, org, fields, text):
    Api(org).send(message(factories.contact(org)))
    Delivery.objects.update(**fields)
    assert sentence(root)[0] == text


def test_the_timeline_has_decisions_attempts_and_receipts(root, org):
    Api(org).send(message(factories.contact(org)))
    work()
    titles = [each.title for each in open_page(root).context["moments"]]
    assert titles[0] in ("Email chosen", "Accepted")
    steps = {"Email chosen", "Sent to simulator"}
    assert set(titles) == steps | {"Accepted", "Handed to the provider", "Delivered"}


def test_timeline_has_no_codes(root, org):
    Api(org).send(message(factories.contact(org)))
    work()
    sent = Delivery.objects.get()
    for decision in ("HOLD", "SEND_AGAIN", "GIVE_UP", "RESEND"):
        Event.objects.create(
            organization_id=org.pk, message_id=sent.message_id, delivery_id=sent.pk,
            type="deferred", detail={"decision": decision, "reason": "no receipt"},
        )  # fmt: skip
    moments = open_page(root).context["moments"]
    decided = [each.title for each in moments if each.text == "no receipt"]
    assert decided == ["Held for review", "Resent", "Given up", "Resent"]
    words = " ".join(f"{each.title} {each.text}" for each in moments)
    assert re.findall("[A-Z]{4,}", words) == []


def test_attempts_show_provider_answer_and_latency(root, org):
    Api(org).send(message(factories.contact(org)))
    work()
    (attempt,) = open_page(root).context["attempts"]
    stored = Attempt.objects.get()
    assert (attempt.provider, attempt.answer, attempt.colour) == (
        "simulator", "The provider accepted it", "good",
    )  # fmt: skip
    assert (attempt.milliseconds, attempt.provider_id) == (stored.latency_ms, stored.provider_id)


def test_reason_is_asked_for_in_a_dialog_alone(root, org):
    Api(org).send(message(factories.contact(org)))
    Delivery.objects.update(status="FAILED", reason="rejected")
    page = open_page(root).content.decode()
    before, dialog = page.split('<dialog id="resend"')
    assert 'name="why"' not in before
    assert dialog.split("</dialog>")[0].count('name="why"') == 1


def test_content_is_shown_in_its_own_frame(root, org):
    ada = factories.contact(org)
    content = {"subject": "Hi", "html": "<b>Hello</b><script>alert(1)</script>"}
    Api(org).send(message(ada, template=None, content=content))
    key = Message.objects.get().pk
    page = open_page(root).content.decode()
    assert "alert(1)" not in page
    assert f'src="{url("html", key, 0)}"' in page
    frame = root.get(url("html", key, 0))
    assert b"<b>Hello</b>" in frame.content
    policy = frame["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert policy.endswith("sandbox")


def test_the_content_of_a_template_is_rendered_for_the_recipient(root, org):
    Api(org).send(message(factories.contact(org)))
    content = open_page(root).context["content"]
    assert content.email.subject == "Hello Ada"
    assert content.email.text == "Note: hello"


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (MessageContent, "The content is no longer stored."),
        (Contact, "The contact was deleted, so the content can't be rendered."),
    ],
)
def test_deleted_content_is_reported(root, org, model, problem):
    Api(org).send(message(factories.contact(org)))
    model.objects.all().delete()
    assert open_page(root).context["content"].problem == problem


def test_the_support_role_sees_reasons_but_no_contents(org):
    ada = factories.contact(org)
    Api(org).send(message(ada))
    Delivery.objects.update(status="FAILED", reason="rejected", detail=f"{ada.email} is unknown")
    support = person("s", org, Membership.Role.SUPPORT)
    page = open_page(support)
    assert page.context["headline"].text == ("Failed: rejected: a…@simulator.rme.test is unknown.")
    assert page.context["content"] is None
    assert ada.email not in page.content.decode()
    assert b"Resend" not in page.content
    assert support.get(url("html", Message.objects.get().pk, 0)).status_code == 403


@pytest.mark.parametrize(
    ("channel", "detail", "shown"),
    [
        ("EMAIL", "550 <ADA@simulator.rme.test>: no such user", "550 <A…@simulator.rme.test>: no"),
        ("EMAIL", "forwarded to eve@y.example", "forwarded to e…@y.example"),
        ("SMS", "41791234567 is unknown", "+41…67 is unknown"),
        ("SMS", "0041 79 123 45 67 is unknown", "+41…67 is unknown"),
        ("SMS", "079 123 45 67 is unknown", "+41…67 is unknown"),
    ],
)
def test_address_in_another_spelling_is_masked(org, channel, detail, shown):
    ada = factories.contact(org, mobile="+41791234567")
    assert Api(org).send(message(ada, channel=channel)).status_code == 202
    Delivery.objects.update(status="FAILED", reason="rejected", detail=detail)
    support = person("s", org, Membership.Role.SUPPORT)
    assert f"Failed: rejected: {shown}" in open_page(support).context["headline"].text
    record = support.get(url("message_record", Message.objects.get().pk)).context["record"]
    assert shown in json.loads(record)["delivery"]["detail"]


@pytest.mark.promise("answer-13", "trace-5")
def test_record_shows_everything_stored_of_a_recipient(root, org):
    ada, bob = factories.contacts(org, 2)
    to = [{"contactId": str(each.pk)} for each in (ada, bob)]
    Api(org).send({**message(ada, to=to), "metadata": {"note": "mine"}})
    work()
    key = Message.objects.get().pk
    page = open_page(root, "?recipient=1").content.decode()
    assert f'href="{url("message_record", key)}?recipient=1"' in page
    record = json.loads(root.get(url("message_record", key) + "?recipient=1").context["record"])
    row = Delivery.objects.get(contact_id=str(bob.pk))
    assert record["delivery"]["contact_id"] == str(bob.pk)
    assert (record["delivery"]["status"], record["delivery"]["fence"]) == ("DELIVERED", row.fence)
    assert record["message"]["metadata"] == {"note": "mine"}
    assert record["message"]["strategy"] == "FIRST_REACHABLE"
    (attempt,) = record["attempts"]
    assert (attempt["provider"], attempt["outcome"]) == ("simulator", "Accepted")
    assert attempt["provider_id"] == Attempt.objects.get(delivery_id=row.pk).provider_id
    assert [each["type"] for each in record["events"]] == ["accepted", "sent", "delivered"]
    assert {each["contact_id"] for each in record["events"]} == {str(bob.pk)}
    assert {each["step"] for each in record["trace"]} >= {"DECISION", "ATTEMPT"}
    assert record["content"]["variables"] == {"note": "hello"}


def test_record_hides_contents_and_addresses_from_support(org):
    ada = factories.contact(org)
    Api(org).send({**message(ada), "metadata": {"note": "secret"}})
    Delivery.objects.update(status="FAILED", reason="rejected", detail=f"{ada.email} is unknown")
    support = person("s", org, Membership.Role.SUPPORT)
    page = support.get(url("message_record", Message.objects.get().pk))
    record = json.loads(page.context["record"])
    assert record["delivery"]["detail"] == "a…@simulator.rme.test is unknown"
    assert "content" not in record
    text = page.content.decode()
    assert [each for each in (ada.email, "secret", "hello") if each in text] == []


def test_a_message_of_many_counts_them_and_shows_one_timeline(root, org):
    people = factories.contacts(org, 45)
    Api(org).send(message(people[0], to=[{"contactId": str(each.pk)} for each in people]))
    first = Delivery.objects.get(position=30)
    Delivery.objects.filter(pk=first.pk).update(status="FAILED", reason="rejected")
    page = open_page(root, "?recipient=30")
    assert page.context["headline"].text == "45 recipients: 44 waiting to be sent, 1 failed."
    assert page.context["chosen"].row.contact_id == first.contact_id
    assert page.context["explanation"].text == "Failed: rejected."
    assert [line.row.position for line in page.context["lines"]] == [*range(20, 40)]
    assert (page.context["earlier"], page.context["later"]) == (0, 40)


def test_a_page_asks_as_often_for_90_recipients_as_for_2(root, org):
    counts = []
    api = Api(org)
    for count in (2, 90):
        people = factories.contacts(org, count)
        api.send(message(people[0], to=[{"contactId": str(each.pk)} for each in people]))
        key = Message.objects.latest("pk").pk
        root.get(url("message", key))  # the session keeps the organization
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            root.get(url("message", key))
        counts.append(len(captured))
    assert counts == [15, 15]


def test_a_scheduled_message_is_cancelled_from_its_page(root, org):
    later = {"mode": "AT", "at": instant(TODAY + timedelta(days=1))}
    Api(org).send(message(factories.contact(org), schedule=later))
    page = open_page(root)
    assert page.context["headline"].text.startswith("Scheduled for ")
    form = {"message": str(Message.objects.get().pk), "why": ""}
    done = root.post(url("choose", "cancel"), form, follow=True)
    assert (done.context["action"].done, done.context["action"].failed) == (1, 0)
    day = on(Delivery.objects.get().updated_at)
    assert sentence(root)[0].startswith(f"Cancelled on {day}, ")


def test_unknown_message_is_404(root, org):
    assert root.get(url("message", ids.new_id())).status_code == 404
    Api(org).send(message(factories.contact(org)))
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    assert open_page(stranger).status_code == 404
    key = Message.objects.get().pk
    assert stranger.get(url("message", key, org="other")).status_code == 404
