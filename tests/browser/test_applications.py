"""An application with a user of its own, in a real Chromium: created, copied, and first used."""

from uuid import uuid4

import pytest
from playwright.sync_api import expect

from rme.tenants.models import Application, Membership, RequestLogEntry, User
from tests import factories
from tests.browser import tabs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def tab(chromium, live_server, transactional_db, client):
    """Return a tab of an owner who has logged in; an error in the browser's console fails."""
    org = factories.organization()
    user = User.objects.create_user("owner", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    session = {
        "name": "sessionid",
        "value": client.cookies["sessionid"].value,
        "url": live_server.url,
    }
    options = {"viewport": tabs.DESKTOP, "locale": "en-GB"}
    allowed = ["clipboard-read", "clipboard-write"]
    with tabs.opened(chromium, cookie=session, permissions=allowed, **options) as page:
        page.goto(f"{live_server.url}/admin/")
        yield page


def test_application_is_created_and_its_first_request_is_seen(tab, journey):
    journey.click("link", "Applications and keys")
    journey.fill(tab.locator("#new-application"), "Shop")
    journey.click("button", "Create application")
    journey.click("button", "Copy Secret")
    secret = tab.locator("#secret-2").inner_text()
    expect(tab.get_by_text("Copied")).to_be_visible()
    assert tab.evaluate("navigator.clipboard.readText()") == secret
    expect(tab.get_by_text("No request yet.")).to_be_visible()
    row = Application.objects.get()
    assert row.user.username == "acme.shop"
    RequestLogEntry.objects.create(
        organization_id="acme",
        application_id=row.pk,
        request_id=uuid4(),
        method="GET",
        route="/suppressions",
        status=200,
        code="",
        microseconds=1,
    )
    text = "GET /suppressions: its first request since this secret was made."
    expect(tab.get_by_text(text)).to_be_visible()
    assert tab.locator("#secret-2").inner_text() == secret
    assert journey.count <= 4
