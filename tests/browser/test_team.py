"""The team in a real Chromium: questions over the page, by keyboard, and without scripts."""

import pytest
from playwright.sync_api import expect

from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import violations
from tests.browser.journey import Journey, KeyboardJourney

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def session(live_server, transactional_db, client):
    """Return the session of an owner whose team has one more member."""
    org = factories.organization()
    for name, role in (("olga", "OWNER"), ("sam", "VIEWER")):
        user = User.objects.create_user(name, password="secret", is_staff=True)
        Membership.objects.create(organization=org, user=user, role=role)
    client.force_login(User.objects.get(username="olga"))
    return {
        "name": "sessionid",
        "value": client.cookies["sessionid"].value,
        "url": live_server.url,
    }


@pytest.fixture
def team_url(live_server):
    return f"{live_server.url}/admin/console/acme/team/"


def test_role_is_changed_over_the_page_by_keyboard(chromium, session, team_url):
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP) as tab:
        tab.goto(team_url)
        journey, link = KeyboardJourney(tab), tab.get_by_role("link", name="Change role of sam")
        dialog = tab.get_by_role("dialog", name="Change the role of sam")
        journey.click("link", "Change role of sam")
        expect(dialog.get_by_role("combobox")).to_be_focused()
        assert violations(tab) == []
        tab.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(link).to_be_focused()

        link.press("Enter")
        expect(dialog.get_by_role("combobox")).to_be_focused()
        journey.choose(dialog.get_by_role("combobox"), str(Membership.Role.SUPPORT.label))
        journey.click("button", "Change role")
        expect(tab.get_by_text("sam has the role Support now.")).to_be_visible()
        expect(tab).to_have_url(team_url)
    assert Membership.objects.get(user__username="sam").role == "SUPPORT"


def test_member_is_removed_after_a_question_that_names_the_person(chromium, session, team_url):
    with tabs.opened(chromium, cookie=session, viewport=tabs.PHONE) as tab:
        tab.goto(team_url)
        journey = Journey(tab)
        journey.click("link", "Remove sam")
        expect(tab.get_by_role("dialog", name="Remove sam from Acme?")).to_be_visible()
        journey.click("button", "Remove sam")
        expect(tab.get_by_text("sam is removed.")).to_be_visible()
        assert journey.count == 2
    assert list(Membership.objects.values_list("user__username", flat=True)) == ["olga"]


def test_invitation_is_sent_and_withdrawn_without_scripts(chromium, session, team_url):
    options = {"viewport": tabs.DESKTOP, "java_script_enabled": False}
    with tabs.opened(chromium, cookie=session, **options) as tab:
        tab.goto(team_url)
        journey = Journey(tab)
        journey.click("button", "Invite person")
        journey.fill("Email", "new@person.example")
        journey.choose("Role", str(Membership.Role.VIEWER.label))
        journey.click("button", "Send invitation")
        journey.click("link", "Done")
        journey.click("link", "Withdraw invitation of new@person.example")
        expect(tab.locator("h1")).to_have_text("Withdraw the invitation of new@person.example?")
        journey.click("button", "Withdraw invitation")
        expect(tab.get_by_text("No open invitations.")).to_be_visible()
