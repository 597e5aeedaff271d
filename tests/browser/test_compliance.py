"""Consent and compliance in a real Chromium: the chain verified, and a person exported."""

import pytest
from playwright.sync_api import expect

from messaging.consent import ledger
from messaging.consent.tasks import answer_privacy_requests, verify_ledgers
from messaging.models import ConsentEntry, PrivacyRequest
from tests import factories
from tests.browser.test_console import cookie, org, tab

__all__ = ["cookie", "org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def test_consent_with_evidence_then_the_chain_then_the_persons_data(tab, journey, org, live_server):
    ada = factories.contact(org)
    tab.goto(f"{live_server.url}/admin/console/acme/consent/")
    journey.fill("Person", "lovelace")
    journey.click("button", "Search this list")
    journey.click("link", "Record consent of Ada Lovelace, " + ", ".join([ada.email, ada.mobile]))
    form = tab.get_by_role("form", name="Record consent")
    journey.choose(form.get_by_label("Channel"), "Email")
    journey.choose(form.get_by_label("Category"), "Marketing")
    journey.choose(form.get_by_label("Kind of evidence"), "Paper form")
    journey.fill(form.get_by_label("Evidence", exact=True), "Congress desk, 3 May")
    journey.click("button", "Save consent")
    expect(tab.get_by_text("Opted in to marketing email.")).to_be_visible()
    assert ConsentEntry.objects.get().evidence == {"kind": "PAPER", "note": "Congress desk, 3 May"}
    assert journey.count <= 8

    tab.goto(f"{live_server.url}/admin/console/acme/consent/")
    before = journey.count
    journey.click("link", "Ledger and chain")
    journey.click("button", "Verify now")
    expect(tab.get_by_text("0 of 1 entries fit")).to_be_visible()
    verify_ledgers()
    expect(tab.get_by_text("The chain holds")).to_be_visible()
    assert ledger.verify(org.pk).broken is None
    assert journey.count - before <= 2

    tab.goto(f"{live_server.url}/admin/console/acme/people/{ada.pk}/")
    before = journey.count
    journey.click("link", "Export data")
    journey.click("button", "Record the request")
    journey.check("I have checked that the request comes from this person")
    journey.click("button", "Export")
    expect(tab.get_by_text("Started. The result appears here.")).to_be_visible()
    answer_privacy_requests()
    expect(tab.get_by_role("button", name="Download")).to_be_visible()
    with tab.expect_download() as loaded:
        journey.click("button", "Download")
    row = PrivacyRequest.objects.get()
    assert loaded.value.suggested_filename == f"data-export-{row.pk}.zip"
    assert journey.count - before <= 5
