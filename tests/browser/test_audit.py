"""The audit, and acting as another user, in a real Chromium."""

import itertools

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from rme.tenants import audit
from rme.tenants.audit import Action, Actor
from rme.tenants.models import Membership, User
from tests import audited, factories
from tests.browser.axe import scrolls_sideways, violations
from tests.browser.test_console import org, tab
from tests.messaging.console.conftest import url

__all__ = ["org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def cookie(org, client):
    """Log a superuser in, who has no password, and return the session's cookie."""
    client.force_login(User.objects.create_superuser("root"))
    return client.cookies["sessionid"].value


def test_a_person_acts_as_another_reads_the_audit_and_ends_it(tab, org, live_server):
    olga = User.objects.create_user("olga", is_staff=True)
    Membership.objects.create(organization=org, user=olga, role=Membership.Role.OWNER)
    ada = factories.contact(org)
    changes = {"email": ["ada@former.example", ada.email], "credentials": ["…", "…"]}
    actor = Actor(olga.pk, "olga", address="2001:db8::7", user_agent="Mozilla/5.0 " + "x" * 180)
    audit.record(actor, [audit.about(ada, Action.CHANGED, changes=changes, reason="asked to")])
    audit.record(actor, [audit.about(org, Action.EXPORTED, text="messages")])
    tab.goto(f"{live_server.url}{reverse('acting_begin', args=[olga.pk])}")
    tab.get_by_label("Why?").fill("she sees an empty list")
    tab.get_by_role("button", name="Act as olga").click()
    banner = tab.get_by_label("Acting as another user")
    expect(banner).to_contain_text("You act as olga (she sees an empty list)")
    found = []
    for width, scheme in itertools.product((1440, 390), ("light", "dark")):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(f"{live_server.url}{url('audit')}")
        tab.evaluate(
            "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
        )
        expect(banner).to_be_visible()
        expect(tab.locator("tbody tr").first).to_contain_text("Began to act as")
        found += [(width, scheme, "scrolls")] if scrolls_sideways(tab) else []
        for context in ("#content", ".c-acting"):
            found += [(width, scheme, *each) for each in violations(tab, context)]
    assert found == []
    tab.get_by_label("Action").select_option("EXPORTED")
    tab.get_by_role("button", name="Show").click()
    expect(tab.locator("tbody tr")).to_have_count(1)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Export as CSV").click()
    assert download.value.suggested_filename == "audit-acme.csv"
    banner.get_by_role("button", name="End").click()
    expect(banner).to_have_count(0)
    assert [(who, action) for who, action, _ in audited.told(actor_name="root")] == [
        ("root", "ACTING_BEGUN"), ("root", "EXPORTED"), ("root", "ACTING_ENDED"),
    ]  # fmt: skip
