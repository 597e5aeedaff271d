"""The list of consent: filters, people and evidence in words, pages by keyset."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.console.compliance import consent_list
from messaging.models import ConsentEntry
from rme.core.cache import TtlCache
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
BOB = {
    "first_name": "Bob",
    "last_name": "Burns",
    "email": "bob@b.example",
    "mobile": "+12125550111",
}


def decide(org, *contacts, status="OPTED_IN", channel="EMAIL", source="API", **evidence):
    decisions = [
        ledger.ConsentDecision(str(each.pk), channel, "MARKETING", status, source, None, evidence)
        for each in contacts
    ]
    return ledger.record(org.pk, decisions)


def see(client, query=""):
    found = client.get(f"{url('consent')}{query}")
    assert found.status_code == 200
    return found


def lines(client, query=""):
    return [
        (line.person, line.entry.status, line.evidence)
        for line in see(client, query).context["lines"]
    ]


def test_each_filter_alone_and_together(root, org):
    ada, bob = factories.contact(org), factories.contact(org, **BOB)
    decide(org, ada, form="Footer", ip="192.0.2.7")
    decide(org, bob, status="OPTED_OUT", channel="SMS", source="SMS_KEYWORD", text="STOP")
    decide(org, ada, status="OPTED_OUT", source="ADMIN", kind="PHONE", note="on 3 May")
    first = ("Ada Lovelace", "OPTED_IN", "Footer, from 192.0.2.7")
    stop = ("Bob Burns", "OPTED_OUT", "STOP")
    call = ("Ada Lovelace", "OPTED_OUT", "phone call, on 3 May")
    assert lines(root) == [call, stop, first]
    assert lines(root, "?person=lovelace") == lines(root, f"?person={ada.email}") == [call, first]
    assert lines(root, f"?person={bob.mobile.replace('+', '%2B')}&status=OPTED_OUT") == [stop]
    assert lines(root, "?channel=SMS") == lines(root, "?source=SMS_KEYWORD") == [stop]
    assert lines(root, "?status=OPTED_IN") == [first]
    assert lines(root, "?status=OPTED_IN&entries=current") == []
    assert lines(root, "?person=lovelace&entries=current") == [call]
    assert lines(root, "?category=ALL") == []
    assert lines(root, "?person=nobody") == []
    assert "No person found." in see(root, "?person=nobody").content.decode()


def test_found_person_links_to_the_consent_forms(root, org):
    ada = factories.contact(org)
    text = see(root, "?person=lovelace").content.decode()
    assert f"{url('person', ada.pk)}?open=opt_in#opted_in_channel" in text
    form = root.get(url("person", ada.pk)).content.decode()
    assert 'id="opted_in_channel"' in form
    assert 'id="opted_out_channel"' in form
    viewer = person("v", org, Membership.Role.VIEWER)
    assert "#opted_in_channel" not in see(viewer, "?person=lovelace").content.decode()


def test_pages_continue_and_scan_a_bounded_number_of_entries(root, org, monkeypatch):
    monkeypatch.setattr(consent_list, "PAGE", 2)
    monkeypatch.setattr(consent_list, "SCANNED", 3)
    ada, bob = factories.contact(org), factories.contact(org, **BOB)
    decide(org, bob, ada, bob, bob, bob)
    decide(org, ada, status="OPTED_OUT")
    found, query = [], "?status=OPTED_IN"
    for _ in range(3):
        page = see(root, query)
        found.append(len(page.context["lines"]))
        query = f"?status=OPTED_IN&after={page.context['following']}"
    assert found == [2, 2, 1]
    assert page.context["following"] is None
    assert lines(root, "?after=nonsense")[0][0] == "Ada Lovelace"


def test_an_erased_person_is_not_listed_and_a_gone_one_has_words(root, org):
    ada, bob = factories.contact(org), factories.contact(org, **BOB)
    decide(org, ada, bob)
    ledger.erase(org.pk, str(ada.pk))
    type(bob).objects.filter(pk=bob.pk).delete()
    assert lines(root) == [("a deleted contact", "OPTED_IN", "")]


def test_entry_of_an_erased_person_has_a_page(root, org):
    ada = factories.contact(org)
    decide(org, ada)
    ledger.erase(org.pk, str(ada.pk))
    page = root.get(url("consent_entry", ConsentEntry.objects.get().pk))
    assert "Erased" in page.content.decode()


def test_statements_do_not_grow(root, org):
    counts = []
    for number in (2, 20):
        decide(org, *factories.contacts(org, number))
        see(root)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            assert len(see(root).context["lines"]) >= number
        counts.append(len(captured))
    assert counts == [11, 11]
