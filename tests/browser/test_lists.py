"""Lists in a real Chromium: rows, filters as chips, ticked rows, columns, and the panel."""

import pytest
from playwright.sync_api import expect

from messaging.models import CallbackLogEntry, Delivery
from rme.core.db import clock
from rme.tenants import audit
from rme.tenants.audit import Action, Actor
from tests import factories
from tests.browser import tabs
from tests.browser.axe import scrolls_sideways, violations
from tests.browser.test_console import cookie, org, tab
from tests.messaging.console.actions.scene import LATER
from tests.rest import Api, message, work

__all__ = ["cookie", "org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
LINES = """rows => rows.map(row => {
  const cells = [...row.querySelectorAll("th, td:not(.c-tick)")].filter(each => each.offsetHeight);
  const lines = {};
  for (const cell of cells) {
    const { lineHeight, paddingTop, paddingBottom } = getComputedStyle(cell);
    const height = cell.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom);
    const count = Math.round(height / parseFloat(lineHeight));
    lines[cell.offsetTop] = Math.max(count, lines[cell.offsetTop] || 0);
  }
  return Object.values(lines).reduce((sum, each) => sum + each, 0);
})"""
"""The number of lines of each row."""
HEIGHT = "rows => rows.map(row => Math.round(row.getBoundingClientRect().height))"


@pytest.fixture
def messages_page(live_server):
    return f"{live_server.url}/admin/console/acme/messages/"


@pytest.fixture
def without_scripts(chromium, live_server, cookie):
    session = {"name": "sessionid", "value": cookie, "url": live_server.url}
    options = {"java_script_enabled": False, "viewport": tabs.DESKTOP, "locale": "en-GB"}
    with tabs.opened(chromium, cookie=session, **options) as page:
        yield page


def send(org, count, **fields):
    api = Api(org)
    for each in factories.contacts(org, count):
        api.send(message(each, **fields))
    work()


def focused_row(tab):
    return tab.evaluate("document.activeElement.getAttribute('aria-label')")


def test_14_rows_fit_on_a_screen_below_a_head_that_stays(tab, org, messages_page):
    send(org, 30)
    tab.goto(f"{messages_page}?channel=EMAIL")
    rows = tab.locator(".c-data tbody tr")
    assert set(rows.evaluate_all(HEIGHT)) == {40}
    expect(rows.nth(13)).to_be_in_viewport(ratio=1)
    tab.mouse.wheel(0, 600)
    expect(rows.nth(0)).not_to_be_in_viewport()
    expect(tab.get_by_role("columnheader", name="Recipient")).to_be_in_viewport(ratio=1)


def test_messages_take_three_lines_at_most_on_a_phone(tab, org, live_server, messages_page):
    send(org, 2)
    send(org, 1, schedule=LATER)
    failed = Delivery.objects.filter(status="DELIVERED").first()
    answer = "550 5.1.1 the mailbox is not available, and nobody can tell whether it ever was"
    Delivery.objects.filter(pk=failed.pk).update(
        status="FAILED", reason="PROVIDER_ERROR", detail=answer, due_at=None
    )
    tab.set_viewport_size(tabs.PHONE)
    person = f"{live_server.url}/admin/console/acme/people/{failed.contact_id}/?tab=messages"
    lines = []
    for address in (messages_page, f"{messages_page}?status=SCHEDULED", person):
        tab.goto(address)
        lines += tab.locator("main tbody tr").evaluate_all(LINES)
        assert not scrolls_sideways(tab)
    assert len(lines) == 5
    assert 1 < min(lines) <= max(lines) <= 3


def test_filter_becomes_a_chip_and_is_removed(tab, journey, org, messages_page):
    send(org, 2)
    Delivery.objects.filter(pk=Delivery.objects.first().pk).update(status="FAILED", due_at=None)
    tab.goto(messages_page)
    journey.unfold("Filter")
    journey.choose("Status", "Failed")
    journey.click("button", "Apply")
    rows = tab.locator(".c-data tbody tr")
    expect(rows).to_have_count(1)
    journey.click("link", "Remove filter Status: Failed")
    expect(rows).to_have_count(2)
    assert journey.count <= 4


def test_filters_and_ticks_need_no_scripts(without_scripts, org, messages_page):
    page = without_scripts
    send(org, 2, schedule=LATER)
    page.goto(messages_page)
    page.locator("summary", has_text="Filter").click()
    page.get_by_role("search").get_by_label("Status").select_option("SCHEDULED")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("link", name="Remove filter Status: Scheduled")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Sends at")).to_be_visible()
    cancel = page.get_by_role("form", name="Ticked messages").get_by_text("Cancel scheduled")
    expect(cancel).to_be_hidden()
    page.get_by_label("Tick message to First0 Last0").check()
    cancel.click()
    expect(page.get_by_text("1 ticked message")).to_be_visible()
    page.goto(messages_page)
    page.locator(".c-data tbody tr").first.click(position={"x": 700, "y": 20})
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()  # the message's page


def test_ticked_messages_are_cancelled(tab, journey, org, messages_page):
    send(org, 3, schedule=LATER)
    tab.goto(messages_page)
    journey.check("Tick message to First0 Last0")
    journey.check("Tick message to First2 Last2")
    expect(tab.get_by_text("2 ticked", exact=True)).to_be_visible()
    journey.click("button", "Cancel scheduled")
    journey.fill(tab.get_by_role("dialog").get_by_label("Reason"), "called off")
    journey.click("button", "Cancel")
    expect(tab.get_by_role("status")).to_contain_text("Done: 2 of 2.")
    assert journey.count <= 5
    assert Delivery.objects.filter(status="CANCELLED").count() == 2


def test_two_quick_clicks_open_one_question_which_shortcuts_leave_alone(tab, org, messages_page):
    send(org, 1, schedule=LATER)
    tab.goto(f"{messages_page}?channel=EMAIL")
    pause = tab.get_by_role("link", name="Pause", exact=True)
    pause.evaluate("link => { link.click(); link.click(); }")
    question = tab.get_by_role("dialog", name="Pause")
    expect(question).to_be_visible()
    tab.wait_for_load_state("networkidle")
    expect(tab.locator("[data-asked]")).to_have_count(1)
    tab.keyboard.press("Control+k")
    expect(tab.locator(".c-search-panel")).to_be_hidden()
    tab.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(pause).to_be_focused()


def test_columns_are_chosen(tab, journey, org, messages_page):
    send(org, 1)
    tab.goto(messages_page)
    heads = tab.get_by_role("columnheader")
    expect(heads.filter(has_text="Category")).to_be_visible()
    journey.unfold("Columns")
    journey.check(tab.get_by_role("group", name="Columns").get_by_label("Category"))
    journey.click("button", "Save columns")
    expect(heads.filter(has_text="Category")).to_have_count(0)
    assert journey.count <= 3


def test_panel_shows_rows_by_mouse(tab, org, messages_page):
    send(org, 3)
    tab.goto(messages_page)
    rows, panel = tab.locator(".c-data tbody tr"), tab.get_by_role("region", name="Details")
    rows.nth(0).locator("td").nth(3).click()
    expect(panel).to_contain_text("First2 Last2")
    expect(panel).to_contain_text("Timeline")
    rows.nth(2).locator("td").nth(3).click()
    expect(panel).to_contain_text("First0 Last0")
    assert violations(tab) == []
    assert not scrolls_sideways(tab)
    panel.get_by_role("button", name="Close details").click()
    expect(panel).to_be_hidden()
    rows.nth(1).get_by_role("link").click()  # the name is a link to the page
    expect(tab).to_have_url(f"{messages_page}{Delivery.objects.order_by('pk')[1].message_id}/")


def test_panel_shows_rows_by_keyboard(tab, org, messages_page):
    send(org, 3)
    tab.goto(messages_page)
    panel = tab.get_by_role("region", name="Details")
    tab.get_by_role("link", name="Open message to First2 Last2").focus()
    tab.keyboard.press("ArrowDown")
    assert focused_row(tab) == "Open message to First1 Last1"
    expect(panel).to_be_hidden()
    tab.keyboard.press("Space")
    expect(panel).to_contain_text("First1 Last1")
    tab.keyboard.press("ArrowDown")
    expect(panel).to_contain_text("First0 Last0")
    tab.keyboard.press("ArrowUp")
    expect(panel).to_contain_text("First1 Last1")
    tab.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert focused_row(tab) == "Open message to First1 Last1"
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{messages_page}{Delivery.objects.order_by('pk')[1].message_id}/")


@pytest.mark.parametrize(
    ("page", "row", "words"),
    [
        ("contacts", "Open Ada Lovelace", "Reachability"),
        ("suppressions", "Open suppression of Ada Lovelace", "Complaint"),
        ("audit", "Open entry: Changed by owner", "192.0.2.1"),
        ("templates", "Open order", "English (United States), Email"),
        ("providers/callbacks", "Open callback of a deleted account", "Compare the secrets."),
    ],
)
def test_other_lists_have_the_panel_too(tab, org, live_server, page, row, words):
    ada = factories.contact(org)
    org.suppression_set.create(channel="EMAIL", contact_id=str(ada.pk), reason="COMPLAINT")
    factories.template(org, name="order")
    refused = {"verdict": "SIGNATURE", "method": "POST", "size": 10, "count": 1, "at": clock.now()}
    CallbackLogEntry.objects.create(organization_id=org.pk, account_id=0, **refused)
    actor = Actor(1, "owner", address="192.0.2.1")
    audit.record(actor, [audit.about(ada, Action.CHANGED)])
    tab.goto(f"{live_server.url}/admin/console/acme/{page}/")
    tab.get_by_role("link", name=row).focus()
    tab.keyboard.press("Space")
    panel = tab.get_by_role("region", name="Details")
    expect(panel).to_contain_text(words)
    assert violations(tab) == []


def test_phone_opens_the_page_of_a_row(tab, org, messages_page):
    send(org, 1)
    tab.set_viewport_size(tabs.PHONE)
    tab.goto(messages_page)
    row = tab.locator(".c-data tbody tr")
    expect(row).to_be_in_viewport()
    row.click(position={"x": 200, "y": 60})
    tab.wait_for_url(f"{messages_page}{Delivery.objects.get().message_id}/")
