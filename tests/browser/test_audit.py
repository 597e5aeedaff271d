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
from tests.browser.journey import Journey
from tests.browser.test_console import org, tab
from tests.messaging.console.conftest import url

__all__ = ["org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def cookie(org, client):
    """Log a superuser in, who has no password, and return the session's cookie."""
    client.force_login(User.objects.create_superuser("root"))
    return client.cookies["sessionid"].value


@pytest.fixture
def olga(org):
    """Return an owner, of whom the audit has long and short entries."""
    user = User.objects.create_user("olga", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    ada = factories.contact(org)
    changes = {"email": ["ada@former.example", ada.email], "credentials": ["…", "…"]}
    actor = Actor(user.pk, "olga", address="2001:db8::7", user_agent="Mozilla/5.0 " + "x" * 180)
    audit.record(actor, [audit.about(ada, Action.CHANGED, changes=changes, reason="asked to")])
    audit.record(actor, [audit.about(org, Action.EXPORTED, text="messages")])
    return user


def begin(journey, olga, live_server):
    """Act as another user; return the banner of every page."""
    journey.tab.goto(f"{live_server.url}{reverse('acting_begin', args=[olga.pk])}")
    journey.fill("Reason", "she sees an empty list")
    journey.click("button", "Act as olga")
    banner = journey.tab.get_by_label("Acting as another user")
    expect(banner).to_contain_text("You act as olga (she sees an empty list)")
    return banner


def test_a_person_acts_as_another_reads_the_audit_and_ends_it(tab, journey, olga, live_server):
    banner = begin(journey, olga, live_server)
    journey.click("link", "Audit")
    journey.unfold("Filter")
    journey.choose("Action", "Exported")
    journey.click("button", "Apply")
    expect(tab.locator("tbody tr")).to_have_count(1)
    with tab.expect_download() as download:
        journey.click("button", "Export as CSV")
    assert download.value.suggested_filename == "audit-acme.csv"
    journey.click("button", "End")
    expect(banner).to_have_count(0)
    assert [(who, action) for who, action, _ in audited.summaries(actor_name="root")] == [
        ("root", "ACTING_BEGUN"), ("root", "EXPORTED"), ("root", "ACTING_ENDED"),
    ]  # fmt: skip
    assert journey.count <= 8


def test_the_audit_can_be_read_while_acting(tab, olga, live_server):
    banner = begin(Journey(tab), olga, live_server)
    found = []
    for width, scheme in itertools.product((1440, 390), ("light", "dark")):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(f"{live_server.url}{url('audit')}")
        tab.evaluate(
            "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
        )
        expect(banner).to_be_visible()
        expect(tab.locator("tbody tr").first).to_contain_text("Started acting as")
        found += [(width, scheme, "scrolls")] if scrolls_sideways(tab) else []
        for context in ("#content", ".c-acting"):
            found += [(width, scheme, *each) for each in violations(tab, context)]
    assert found == []
