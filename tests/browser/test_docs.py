"""The description of the API in a real browser, under its own policy and without the network."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import tabs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def test_docs_show_the_calls_and_load_nothing_from_elsewhere(chromium, live_server):
    asked = []
    with tabs.opened(chromium, failed_requests=True) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{live_server.url}/rme/v1/docs")
        operation = page.locator(".opblock", has_text="/rme/v1/messages").first
        expect(operation).to_be_visible()
        operation.locator(".opblock-summary-control").click()
        expect(operation.get_by_text("Parameters", exact=True)).to_be_visible()
        page.get_by_role("button", name="Authorize").first.click()
        expect(page.get_by_text("Available authorizations")).to_be_visible()
        expect(page.locator("body")).to_have_css("margin", "0px")
    assert asked
    own = rf"({re.escape(live_server.url)}/|data:)"
    assert [url for url in asked if not re.match(own, url)] == []


def test_docs_in_a_frame_are_not_shown(chromium, live_server):
    context = chromium.new_context()
    page = context.new_page()
    refused = []
    page.on("console", lambda entry: refused.append(entry.text) if entry.type == "error" else None)
    page.goto(f"{live_server.url}/livez")
    page.set_content(f'<iframe src="{live_server.url}/rme/v1/docs"></iframe>')
    page.wait_for_timeout(1000)
    framed = [frame.url for frame in page.frames[1:]]
    context.close()
    assert framed == ["chrome-error://chromewebdata/"]
    assert "frame-ancestors" in " ".join(refused) or "X-Frame-Options" in " ".join(refused)
