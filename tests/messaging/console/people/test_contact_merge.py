"""Two contacts become one: what follows, whose consent counts, and that the ledger stays valid."""

from datetime import UTC, datetime

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import erasure, ledger
from messaging.consent.ledger import ConsentDecision
from messaging.console.people import contact_merge
from messaging.models import ConsentEntry, Delivery, Suppression
from messaging.store.gates import current_consent
from push.models import Device
from rme.core.cache import TtlCache
from rme.crm.models import Case, Contact
from rme.tenants.audit import Actor
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import fill, person

pytestmark = pytest.mark.django_db
CHANNELS = ("EMAIL", "SMS", "PUSH")


def at(day):
    return datetime(2026, 1, day, tzinfo=UTC)


@pytest.fixture
def two(org):
    """Return two contacts who are one person."""
    stays = factories.contact(org, first_name="", mobile="", language="")
    goes = factories.contact(org, email="ada@work.example", language="en_GB")
    return stays, goes


def decide(contact, *decisions):
    """Record decisions: channel, category, status and day."""
    ledger.record(
        contact.organization_id,
        [
            ConsentDecision(str(contact.pk), channel, category, status, "API", at(day))
            for channel, category, status, day in decisions
        ],
    )


def merge(stays, goes):
    contact_merge.merge(stays, goes, actor=Actor(name="merger"), reason="one person")


def allowed(contact, category="MARKETING"):
    """Return the channels on which a category that needs consent may be sent."""
    found = current_consent.read(contact.organization_id, [str(contact.pk)], CHANNELS, [category])
    return {
        channel
        for channel in CHANNELS
        if found.allows(str(contact.pk), channel, category, opt_in=True)
    }


def merge_url(*rows):
    """Return the address of the page that merges the second contact into the first."""
    query = "&".join(f"contact={row.pk}" for row in rows)
    return f"{url('contacts_merge')}?{query}"


def test_records_of_a_merged_contact_follow_it(root, org, two):
    stays, goes = two
    Api(org).send(message(goes))
    work()
    factories.device(org, goes)
    Case.objects.create(organization=org, number="1", subject="S", issue="I", contact=goes)
    shown = root.get(merge_url(stays, goes))
    assert shown.context["moved"] == [("messages", 1), ("devices", 1), ("cases", 1)]
    for text in ("First name: Ada", "Language: en_GB", "Records that move to"):
        assert text in shown.content.decode()
    refused = root.post(merge_url(stays, goes), {"why": " "})
    assert refused.context["form"].errors == {"why": ["This field is required."]}
    assert Contact.objects.filter(pk=goes.pk).exists()
    merged = root.post(merge_url(stays, goes), {"why": "one person"})
    assert merged["Location"] == url("person", stays.pk)
    row = Contact.objects.get()
    assert (row.pk, row.first_name, row.email, row.mobile, row.language) == (
        stays.pk,
        "Ada",
        stays.email,
        goes.mobile,
        "en_GB",
    )
    assert Delivery.objects.get().contact_id == str(stays.pk)
    assert Device.objects.get().contact_id == str(stays.pk)
    assert Case.objects.get().contact == row
    lines = audited.lines(object_id=str(stays.pk))
    assert audited.summaries() == [("root", "MERGED", f"with {goes.pk}")]
    assert "reason: one person" in lines
    assert "first_name: – → Ada" in lines


@pytest.mark.parametrize(
    ("kept", "gone", "result"),
    [
        ([], [], set()),
        ([], [("EMAIL", "MARKETING", "OPTED_IN", 1)], {"EMAIL"}),
        ([("EMAIL", "MARKETING", "OPTED_IN", 2)], [("EMAIL", "MARKETING", "OPTED_OUT", 1)], set()),
        ([("EMAIL", "MARKETING", "OPTED_OUT", 1)], [("EMAIL", "MARKETING", "OPTED_IN", 2)], set()),
        ([("EMAIL", "MARKETING", "OPTED_IN", 2)], [("ALL", "ALL", "OPTED_OUT", 1)], set()),
        ([("ALL", "ALL", "OPTED_OUT", 1)], [("EMAIL", "MARKETING", "OPTED_IN", 2)], set()),
        (
            [("ALL", "ALL", "OPTED_OUT", 1), ("SMS", "MARKETING", "OPTED_IN", 2)],
            [("ALL", "ALL", "OPTED_OUT", 1), ("SMS", "MARKETING", "OPTED_IN", 3)],
            {"SMS"},
        ),
        ([("ALL", "ALL", "OPTED_IN", 1)], [("SMS", "ALL", "OPTED_OUT", 2)], {"EMAIL", "PUSH"}),
        ([("SMS", "ALL", "OPTED_OUT", 1)], [("ALL", "ALL", "OPTED_IN", 2)], {"EMAIL", "PUSH"}),
        (
            [("ALL", "ALL", "OPTED_OUT", 1)],
            [("ALL", "MARKETING", "OPTED_IN", 2), ("PUSH", "ALL", "OPTED_IN", 2)],
            set(),
        ),
    ],
)
def test_the_stricter_consent_counts(org, two, kept, gone, result):
    stays, goes = two
    decide(stays, *kept)
    decide(goes, *gone)
    before = list(ConsentEntry.objects.order_by("pk").values())
    merge(stays, goes)
    assert allowed(stays) == result
    entries = list(ConsentEntry.objects.order_by("pk").values())
    assert entries[: len(before)] == before  # none was edited
    assert bool(entries[len(before) :]) == bool(gone)
    assert ledger.verify(org.pk).broken is None


def test_opt_out_of_everything_applies_to_future_categories(org, two):
    stays, goes = two
    decide(stays, ("EMAIL", "ALL", "OPTED_IN", 2))
    decide(goes, ("EMAIL", "ALL", "OPTED_OUT", 1))
    merge(stays, goes)
    assert allowed(stays, "NEWS_TO_COME") == set()


def test_the_stronger_and_longer_suppression_stays(org, two):
    stays, goes = two
    for contact, channel, reason, day in (
        (stays, "EMAIL", "COMPLAINT", 5),
        (goes, "EMAIL", "MANUAL", None),
        (goes, "SMS", "STOP", 7),
    ):
        Suppression.objects.create(
            organization=org,
            contact_id=str(contact.pk),
            channel=channel,
            reason=reason,
            expires_at=datetime(2999, 1, day, tzinfo=UTC) if day else None,
        )
    merge(stays, goes)
    rows = Suppression.objects.order_by("channel")
    assert list(rows.values_list("contact_id", "channel", "reason", "expires_at")) == [
        (str(stays.pk), "EMAIL", "COMPLAINT", None),
        (str(stays.pk), "SMS", "STOP", datetime(2999, 1, 7, tzinfo=UTC)),
    ]


def test_an_erasure_reaches_the_entries_of_merged_contacts(org, two):
    stays, goes = two
    third = factories.contact(org)
    for contact in (stays, goes, third):
        decide(contact, ("EMAIL", "MARKETING", "OPTED_IN", 1))
    merge(goes, third)
    merge(stays, goes)
    erasure.erase(org.pk, str(stays.pk))
    assert set(ConsentEntry.objects.values_list("contact_id", flat=True)) == {""}
    assert ledger.verify(org.pk).broken is None


def test_statements_do_not_grow_with_rows(org):
    ContentType.objects.get_for_model(Contact)  # a process reads it once
    found = []
    for count in (1, 20):
        stays, goes = factories.contacts(org, 2)
        for number in range(count):
            decide(goes, ("EMAIL", "MARKETING", "OPTED_IN", number + 1))
            Case.objects.create(
                organization=org, number=f"{count}-{number}", subject="S", issue="I", contact=goes
            )
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            merge(stays, goes)
        found.append(len(captured))
    assert found == [25, 25]


def test_contacts_of_two_organizations_are_not_merged(root, org, two):
    stays, _ = two
    theirs = factories.contact(factories.organization("other"))
    for ticked in ([], [stays], [stays, theirs], [stays, stays], [*two, factories.contact(org)]):
        shown = root.post(merge_url(*ticked), {"why": "one person"}, follow=True)
        assert "Tick exactly two contacts to merge." in shown.content.decode()
    with pytest.raises(ValueError, match="one organization"):
        merge(stays, theirs)
    assert Contact.objects.count() == 4


def test_other_contact_is_found_from_the_persons_page(root, org, two):
    stays, goes = two
    found = root.get(merge_url(stays), {"contact": stays.pk, "q": goes.last_name})
    assert [key for key, *_ in found.context["matches"]] == [str(goes.pk)]
    assert f"?contact={stays.pk}&amp;contact={goes.pk}" in found.content.decode()
    nobody = root.get(merge_url(stays), {"contact": stays.pk, "q": "Nobody"})
    assert "No other contact matches." in nobody.content.decode()


@pytest.mark.parametrize("role", ["VIEWER", "OPERATOR"])
def test_only_people_allowed_to_change_contacts_merge_them(org, two, role):
    stays, goes = two
    stranger = person("s", factories.organization("other"), "OWNER")
    for client in (stranger, person("r", org, role)):
        client.post(merge_url(stays, goes), {"why": "one person"})
    assert Contact.objects.filter(pk=goes.pk).exists() is (role == "VIEWER")


def test_page_opens_for_a_filled_organization(root, org, two):
    fill(org)
    assert root.get(merge_url(*two)).status_code == 200
