"""What a recipient objects to holds for every contact with the address."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger, opt_outs
from messaging.domain.progress.receipts import Receipt
from messaging.feedback import receipts
from messaging.links import PreferenceLink
from messaging.models import AddressOptOut, Category, ConsentEntry, ConsentEntryInTest, Delivery
from rme.core.cache import TtlCache
from rme.tenants.models import Application
from tests import factories
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db
ONE_CLICK = {"List-Unsubscribe": "One-Click"}
NEWS = {"name": "news", "language": "en_US"}
SAME = [
    ("ada@bücher.example", "ADA@xn--bcher-kva.example"),
    ("Ada@Example.com", "a\u200bda@exam\u00adple.com"),
    ("ada@example.com", '"ada"@example.com.'),
]


@pytest.fixture
def pair(org):
    """Return two contacts of one address who opted in to MARKETING."""
    return opted_in(org, *(factories.contact(org, email="ada@example.com") for _ in range(2)))


def opted_in(org, *people):
    factories.template(org, name="news", category="MARKETING", text="{{ unsubscribe_url }}")
    decide(org, "OPTED_IN", *people)
    return people


def decide(org, status, *people):
    ledger.record(
        org.pk,
        [
            ledger.ConsentDecision(str(each.pk), "EMAIL", "MARKETING", status, "API", None)
            for each in people
        ],
    )


def news(api, *people, **fields):
    body = {"category": "MARKETING", "template": NEWS, **fields}
    return api.send(message(*people, **body))


def sent_link(api, org, person):
    """Send MARKETING to a person; return the link in it, and its delivery."""
    answer = news(api, person)
    assert answer.status_code == 202
    work()
    delivery = Delivery.objects.get(message_id=answer.json()["messageId"])
    return PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING", str(delivery.pk)), delivery


def by_one_click(link, delivery):
    assert Client().post(f"/p/u/{link.token}", ONE_CLICK).status_code == 200


def by_button(link, delivery):
    assert Client().post(f"/p/u/{link.token}", {"unsubscribe": "1"}).status_code == 200


def by_refusal(link, delivery):
    form = {"on": ["MARKETING.EMAIL"], "want": []}
    assert Client().post(f"/p/{link.token}", form).status_code == 303


def by_stop(link, delivery):
    assert Client().post(f"/p/{link.token}", {"stop": "1"}).status_code == 303


def by_provider(link, delivery):
    opt_outs.record([delivery.pk])


def by_complaint(link, delivery):
    receipts.apply([Receipt(delivery.pk, "complained")])


WAYS = [by_one_click, by_button, by_refusal, by_stop, by_provider, by_complaint]


@pytest.mark.parametrize("object_", WAYS)
def test_an_objection_covers_all_contacts_of_the_address(api, org, pair, object_):
    ada, twin = pair
    object_(*sent_link(api, org, ada))
    code = "SUPPRESSED" if object_ is by_complaint else "NO_CONSENT"
    assert [news(api, each).json()["error"]["code"] for each in pair] == [code, code]
    later = factories.contact(org, email="ada@example.com")
    decide(org, "OPTED_IN", twin)
    codes = [news(api, each).json().get("error", {}).get("code") for each in (ada, twin, later)]
    if object_ is by_complaint:
        assert codes == ["SUPPRESSED"] * 3
    else:
        assert codes == ["NO_CONSENT", None, "NO_CONSENT"]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_spellings_of_an_address_are_one(api, org, first, second):
    people = opted_in(org, *(factories.contact(org, email=each) for each in (first, second)))
    by_one_click(*sent_link(api, org, people[0]))
    assert news(api, people[1]).json()["error"]["code"] == "NO_CONSENT"


def test_opt_out_covers_categories_without_required_consent(api, org):
    Category.objects.create(organization=org, name="NEWS", regime=Category.Regime.OPT_OUT)
    TtlCache.clear_all()
    factories.template(org, name="news", category="NEWS", text="{{ unsubscribe_url }}")
    ada, twin = (factories.contact(org, email="ada@example.com") for _ in range(2))
    other = factories.contact(org, email="other@example.com")
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "NEWS")
    by_one_click(link, None)
    answers = [news(api, each, category="NEWS") for each in (ada, twin, other)]
    assert [each.status_code for each in answers] == [403, 403, 202]
    entry = ConsentEntry.objects.get()
    assert list(AddressOptOut.objects.values_list("address", "channel", "category", "entry")) == [
        ("ada@example.com", "EMAIL", "NEWS", entry.pk)
    ]


def test_opt_out_covers_the_address_the_message_went_to(api, org, pair):
    ada, twin = pair
    link, _ = sent_link(api, org, ada)
    type(ada).objects.filter(pk=ada.pk).update(email="new@example.com")
    by_one_click(link, None)
    assert news(api, twin).json()["error"]["code"] == "NO_CONSENT"
    assert news(api, ada).json()["error"]["code"] == "NO_CONSENT"


def test_merged_contact_can_still_unsubscribe(api, org, pair):
    ada, twin = pair
    link, _ = sent_link(api, org, ada)
    type(ada).objects.filter(pk=ada.pk).delete()
    for _ in range(2):
        by_one_click(link, None)
    assert news(api, twin).json()["error"]["code"] == "NO_CONSENT"
    entry = ConsentEntry.objects.get(source="ONE_CLICK")
    assert (entry.contact_id, entry.category) == (str(ada.pk), "MARKETING")


def test_an_objection_before_the_address_was_covered_is_recorded_again(api, org, pair):
    ada, twin = pair
    link, _ = sent_link(api, org, ada)
    decide(org, "OPTED_OUT", ada)  # by the caller, who speaks of one contact
    assert news(api, twin).status_code == 202
    for _ in range(2):
        by_one_click(link, None)
    assert news(api, twin).json()["error"]["code"] == "NO_CONSENT"
    assert ConsentEntry.objects.filter(source="ONE_CLICK").count() == 1


@pytest.mark.parametrize("object_", [by_one_click, by_button, by_provider])
def test_repeated_opt_out_covers_a_contact_that_opted_in_between(api, org, pair, object_):
    ada, twin = pair
    link, delivery = sent_link(api, org, ada)
    object_(link, delivery)
    decide(org, "OPTED_IN", twin)
    assert news(api, twin).status_code == 202
    object_(link, delivery)
    assert [news(api, each).json()["error"]["code"] for each in pair] == ["NO_CONSENT"] * 2
    assert ConsentEntry.objects.filter(status="OPTED_OUT").count() == 1  # the ledger has it once


def test_reports_of_one_batch_renew_repeated_objections_and_record_new_ones(api, org, pair):
    ada, twin = pair
    eve, other = opted_in_again(org, "eve@example.com")
    deliveries = [sent_link(api, org, each)[1] for each in (ada, eve)]
    opt_outs.record([deliveries[0].pk])
    decide(org, "OPTED_IN", twin)
    with CaptureQueriesContext(connection) as captured:
        opt_outs.record([each.pk for each in deliveries])
    texts = [each["sql"] for each in captured.captured_queries]
    everybody = (ada, twin, eve, other)
    codes = [news(api, each).json()["error"]["code"] for each in everybody]
    assert codes == ["NO_CONSENT"] * 4
    # One for the renewed objections, and one for the new ones.
    assert sum('INSERT INTO "messaging_addressoptout"' in text for text in texts) == 2


def test_unsubscribing_at_the_provider_again_after_a_new_opt_in_opts_out(api, org, pair):
    ada, twin = pair
    _, delivery = sent_link(api, org, ada)
    by_provider(None, delivery)
    decide(org, "OPTED_IN", ada, twin)
    assert [news(api, each).status_code for each in pair] == [202, 202]
    by_provider(None, delivery)
    assert [news(api, each).json()["error"]["code"] for each in pair] == ["NO_CONSENT"] * 2


def test_repeated_report_of_a_test_message_keeps_the_live_opt_out(api, org, pair):
    ada, twin = pair
    by_provider(None, sent_link(api, org, ada)[1])
    decide(org, "OPTED_IN", ada, twin)
    _, delivery = sent_link(Api(org, Application.Mode.TEST), org, twin)
    for _ in range(2):
        by_provider(None, delivery)
    assert [news(api, each).status_code for each in pair] == [202, 202]
    assert ConsentEntryInTest.objects.count() == 1


def test_opt_out_blocks_already_accepted_messages(api, org, pair):
    ada, twin = pair
    link, _ = sent_link(api, org, ada)
    waiting = news(api, twin).json()["messageId"]
    by_one_click(link, None)
    work()
    row = Delivery.objects.get(message_id=waiting)
    assert (row.status, row.reason) == ("BLOCKED", "NO_CONSENT")


def test_page_of_another_contact_shows_the_opt_out_and_reverts_it(api, org, pair):
    ada, twin = pair
    by_one_click(*sent_link(api, org, ada))
    link = PreferenceLink(org.pk, str(twin.pk), "EMAIL", "MARKETING")
    page = Client().get(f"/p/{link.token}?lang=en").content.decode()
    assert 'name="off" value="MARKETING.EMAIL"' in page
    Client().post(f"/p/{link.token}", {"off": ["MARKETING.EMAIL"], "want": ["MARKETING.EMAIL"]})
    assert news(api, twin).status_code == 202
    assert news(api, ada).json()["error"]["code"] == "NO_CONSENT"


def test_recipients_of_one_address_get_a_message_once(api, org, pair):
    answer = news(api, *pair)
    assert answer.status_code == 202
    shown = [
        (each["status"], each["error"] and each["error"]["code"])
        for each in answer.json()["recipients"]
    ]
    assert shown == [("ACCEPTED", None), ("BLOCKED", "DUPLICATE_ADDRESS")]
    rows = Delivery.objects.order_by("id").values_list("status", "reason")
    assert list(rows) == [("ACCEPTED", None), ("BLOCKED", "DUPLICATE_ADDRESS")]


def test_recipients_of_one_phone_get_an_sms_once(api, org):
    people = [factories.contact(org, mobile=each) for each in ("+5491123456789", "+541123456789")]
    answer = api.send(message(*people, channel="SMS")).json()
    assert [each["status"] for each in answer["recipients"]] == ["ACCEPTED", "BLOCKED"]


def test_blocked_recipient_leaves_the_address_to_the_next(api, org, pair):
    ada, twin = pair
    decide(org, "OPTED_OUT", ada)
    shown = news(api, ada, twin).json()["recipients"]
    assert [(each["status"], each["error"] and each["error"]["code"]) for each in shown] == [
        ("BLOCKED", "NO_CONSENT"),
        ("ACCEPTED", None),
    ]


def test_objections_of_earlier_releases_cover_the_address(api, org, pair):
    ada, twin = pair
    never_sent = opted_in_again(org, "eve@example.com")
    link, _ = sent_link(api, org, ada)
    by_one_click(link, None)
    by_one_click(PreferenceLink(org.pk, str(never_sent[0].pk), "EMAIL", "MARKETING"), None)
    AddressOptOut.objects.all().delete()
    type(ada).objects.filter(pk=ada.pk).update(email="new@example.com")
    assert news(api, twin).status_code == 202
    module = import_module("messaging.migrations.0043_earlier_address_opt_outs")
    for _ in range(2):
        module.cover_addresses(apps, connection.schema_editor())
    objections = AddressOptOut.objects.order_by("address").values_list(
        "address", "category", "entry"
    )
    entries = ConsentEntry.objects.filter(source="ONE_CLICK").order_by("id")
    assert list(objections) == [
        ("ada@example.com", "MARKETING", entries[0].pk),
        ("eve@example.com", "MARKETING", entries[1].pk),
    ]
    assert news(api, twin).json()["error"]["code"] == "NO_CONSENT"
    assert news(api, never_sent[1]).json()["error"]["code"] == "NO_CONSENT"


def opted_in_again(org, email):
    people = [factories.contact(org, email=email) for _ in range(2)]
    decide(org, "OPTED_IN", *people)
    return people
