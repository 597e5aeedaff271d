"""What a person has typed survives: links, the end of the session, errors and quick changes."""

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from messaging.models import ConsentEntry, ProviderAccount, Suppression
from rme.crm.models import Contact
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.browser.journey import Journey
from tests.browser.test_console import cookie, org, tab

__all__ = ["cookie", "org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
EVIDENCE = "by phone on 3 May"


def type_evidence(journey, org):
    """Type evidence into the form that opts a person out."""
    factories.contact(org)
    journey.search("Lovelace")
    journey.click("button", "Record opt-out")
    journey.fill("Evidence", EVIDENCE)


def stored(tab):
    """Return what the tab has stored of its forms."""
    return tab.evaluate("() => sessionStorage.getItem('rme-input')")


def leaves(tab, role, name):
    """Click; return whether the browser asks first, and stay then."""
    asked = []
    tab.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    tab.get_by_role(role, name=name, exact=True).first.click()
    tab.wait_for_timeout(300)
    return asked == []


def test_evidence_survives_the_end_of_the_session(tab, journey, org):
    type_evidence(journey, org)
    Session.objects.all().delete()
    journey.click("button", "Opt out")
    journey.log_in("owner", "secret")
    expect(tab.get_by_role("status").filter(has_text="Your input is back")).to_be_visible()
    expect(tab.get_by_label("Evidence").first).to_have_value(EVIDENCE)
    assert stored(tab) is None
    journey.click("button", "Opt out")
    expect(tab.get_by_text("Opted out of all messages.")).to_be_visible()
    assert ConsentEntry.objects.get().evidence == {"note": EVIDENCE}
    assert stored(tab) is None


def test_input_of_a_question_survives_the_end_of_the_session(tab, journey, org, live_server):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@simulator.rme.test", reason="MANUAL"
    )
    tab.goto(f"{live_server.url}/admin/console/acme/suppressions/{row.pk}/")
    journey.click("link", "Lift suppression")
    journey.fill("Reason", "asked by letter")
    Session.objects.all().delete()
    journey.click("button", "Lift suppression")
    journey.log_in("owner", "secret")
    expect(tab.get_by_role("status").filter(has_text="Your input is back")).to_be_visible()
    expect(tab.get_by_label("Reason")).to_have_value("asked by letter")


def test_input_comes_back_to_its_person_only(tab, journey, org):
    user = User.objects.create_user("ben", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    type_evidence(journey, org)
    Session.objects.all().delete()
    journey.click("button", "Opt out")
    assert EVIDENCE in stored(tab)
    journey.log_in("ben", "secret")
    expect(tab.get_by_label("Evidence").first).to_have_value("")
    assert stored(tab) is None


def test_log_out_forgets_the_input(tab, journey, org):
    type_evidence(journey, org)
    tab.once("dialog", lambda dialog: dialog.accept())
    tab.get_by_role("button", name="Your account").click()
    tab.get_by_role("button", name="Log out").click()
    expect(tab.locator("input[name=password]")).to_be_visible()
    assert stored(tab) is None


def test_secrets_are_not_kept(tab, journey, org, live_server):
    tab.goto(f"{live_server.url}/admin/console/acme/providers/new/smtp/")
    tab.get_by_label("host").fill("mail.example")
    tab.locator("input[type=password]").first.fill("hunter2")
    Session.objects.all().delete()
    tab.get_by_role("button", name="Save and check the connection").click()
    expect(tab.get_by_role("button", name="Log in", exact=True)).to_be_visible()
    assert "mail.example" in stored(tab)
    assert "hunter2" not in stored(tab)
    journey.log_in("owner", "secret")
    expect(tab.get_by_label("host")).to_have_value("mail.example")
    expect(tab.locator("#content input[type=password]").first).to_have_value("")


def test_secret_of_several_lines_is_not_kept(tab, org, live_server):
    tab.goto(f"{live_server.url}/admin/console/acme/providers/new/apns/")
    tab.get_by_label("Team ID").fill("TEAM012345")
    tab.get_by_label("Authentication key").fill("hunter2")
    Session.objects.all().delete()
    tab.get_by_role("button", name="Save and check the connection").click()
    expect(tab.get_by_role("button", name="Log in", exact=True)).to_be_visible()
    assert ("TEAM012345" in stored(tab), "hunter2" in stored(tab)) == (True, False)


def test_double_click_saves_once(tab, journey, org, live_server):
    tab.goto(f"{live_server.url}/admin/console/acme/contacts/new/")
    journey.fill("Last name", "Lovelace")
    button = tab.get_by_role("button", name="Save", exact=True)
    button.evaluate("(button) => { button.click(); setTimeout(() => button.click(), 30); }")
    expect(tab.get_by_text("Lovelace is saved.")).to_be_visible()
    assert Contact.objects.count() == 1


def test_changed_lane_warns_before_it_is_left(tab, org, live_server):
    for priority, name in enumerate(("west", "east")):
        fields = {"organization": org, "kind": "simulator", "channel": "EMAIL", "name": name}
        ProviderAccount.objects.create(**fields, priority=priority)
    tab.goto(f"{live_server.url}/admin/console/acme/providers/")
    assert leaves(tab, "link", "Templates")
    tab.go_back()
    tab.get_by_role("button", name="Move east up").click()
    assert not leaves(tab, "link", "Templates")
    order = tab.get_by_role("form", name="Order of Email")
    order.get_by_label("Reason").fill("east is faster")
    order.get_by_role("button", name="Save order").click()
    expect(order.get_by_role("row").nth(1)).to_contain_text("east")
    assert leaves(tab, "link", "Templates")


def test_other_form_of_the_page_warns_before_it_is_lost(tab, journey, org):
    type_evidence(journey, org)
    assert not leaves(tab, "link", "Send message")
    expect(tab.get_by_label("Evidence").first).to_have_value(EVIDENCE)


def test_error_page_leads_back_to_the_input(chromium, live_server, cookie, org):
    session = {"name": "sessionid", "value": cookie, "url": live_server.url}
    options = {"viewport": tabs.DESKTOP, "locale": "en-GB", "allows": tabs.LOAD_FAILED}
    with tabs.opened(chromium, cookie=session, **options) as tab:
        tab.goto(f"{live_server.url}/admin/")
        refuse_once(tab, Journey(tab), org)


def refuse_once(tab, journey, org):
    type_evidence(journey, org)
    tab.context.clear_cookies(name="csrftoken")
    journey.click("button", "Opt out")
    journey.click("link", "Back to your input")
    expect(tab.get_by_label("Evidence").first).to_have_value(EVIDENCE)
    journey.click("button", "Opt out")
    expect(tab.get_by_text("Opted out of all messages.")).to_be_visible()


def test_last_of_two_quick_choices_counts(tab, org, live_server):
    for name in ("first", "second"):
        factories.template(org, name=name, html=f"<p>{{{{ {name}_number }}}}</p>")
    tab.goto(f"{live_server.url}/admin/console/acme/send/")
    held = []
    tab.route("**/send/", lambda route: held.append(route))
    choice = tab.locator("#send_template")
    for name in ("first", "second"):
        with tab.expect_request("**/send/"):
            choice.select_option(label=f"{name} (email)")
    for route in reversed(held):
        with tab.expect_response("**/send/"):
            route.continue_()
    tab.unroute_all()
    expect(tab.get_by_label("second_number")).to_be_visible()
    expect(tab.get_by_label("first_number")).to_have_count(0)


def test_variables_of_a_choice_survive_the_end_of_the_session(tab, journey, org, live_server):
    factories.template(org, name="order", html="<p>{{ number }}</p>")
    tab.goto(f"{live_server.url}/admin/console/acme/send/")
    journey.fill("Recipient", "reto@person.example")
    journey.choose(tab.locator("#send_template"), "order (email)")
    journey.fill("number", "A-17")
    Session.objects.all().delete()
    journey.click("button", "Preview")
    journey.log_in("owner", "secret")
    expect(tab.get_by_label("number")).to_have_value("A-17")
    expect(tab.get_by_label("Recipient")).to_have_value("reto@person.example")
