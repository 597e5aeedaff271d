"""The settings of an organization in a real Chromium: several languages are added at once."""

import pytest
from playwright.sync_api import expect

from rme.tenants.models import Membership, Organization, User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import violations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def tab(chromium, live_server, transactional_db, client):
    org = factories.organization()
    user = User.objects.create_user("olga", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    session = {
        "name": "sessionid",
        "value": client.cookies["sessionid"].value,
        "url": live_server.url,
    }
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP) as page:
        page.goto(f"{live_server.url}/admin/tenants/organization/acme/change/")
        yield page


def test_languages_are_added_and_removed_before_one_save(tab, journey):
    for language in ("German", "French", "Italian"):
        journey.choose("Add a language", language)
        journey.click("button", "Add language")
    expect(tab.get_by_label("Add a language")).to_have_value("")
    tab.get_by_role("checkbox", name="French").uncheck()
    assert violations(tab) == []
    journey.click("button", "Save")
    expect(tab.get_by_text("was changed successfully")).to_be_visible()
    assert Organization.objects.get().languages == ["de", "it"]
    assert journey.count <= 7
