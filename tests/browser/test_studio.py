"""The template studio in a real Chromium: what a person does there, counted, and what it shows."""

from io import BytesIO

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from messaging.content import templates
from messaging.content.files import archives
from messaging.content.files.file_types import SourceFile
from messaging.models import SendingRules, Template, TemplateVersion
from messaging.policy import organization_policy
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser.axe import violations
from tests.browser.hostile import HOSTILE, PICTURE
from tests.browser.test_console import cookie, org, tab

__all__ = ["cookie", "org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def second_person(org, client):
    """Log in another owner; return the session's cookie."""
    user = User.objects.create_user("ben", "ben@example.com", "secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    return client.cookies["sessionid"].value


def test_an_email_in_two_languages_is_written_tested_reviewed_and_published(
    tab, journey, org, live_server, client
):
    SendingRules.objects.create(organization=org, review_templates=True)
    organization_policy.forget(org.pk)
    User.objects.filter(username="owner").update(email="owner@example.com")
    factories.contact(org, first_name="Olga", email="owner@example.com")
    factories.template(org, name="notice", language="de")  # so German is one of its languages
    journey.search("new template")
    journey.fill(tab.locator("#new_name"), "order")
    journey.click("button", "Add template")
    journey.fill("Subject", "Your order")
    journey.fill(
        tab.get_by_role("textbox", name="HTML", exact=True), "<p>Dear {{ contact.first_name }}</p>"
    )
    rendering = tab.frame_locator("iframe[name=studio-rendering]")
    expect(rendering.locator("p")).to_have_text("Dear Ada")
    journey.click("button", "Send test to me")
    expect(tab.get_by_text("Version 1 is on its way to owner@example.com.")).to_be_visible()
    journey.click("button", "Add German")
    journey.fill("Subject", "Ihre Bestellung")
    journey.fill(
        tab.get_by_role("textbox", name="HTML", exact=True),
        "<p>Guten Tag {{ contact.first_name }}</p>",
    )
    expect(rendering.locator("p")).to_have_text("Guten Tag Ada")
    journey.click("button", "Request review")
    expect(
        tab.get_by_text("2 drafts are waiting for review. Someone else can approve them.")
    ).to_be_visible()
    tab.goto("about:blank")  # the page left, whose session ends here
    value = second_person(org, client)
    tab.context.add_cookies([{"name": "sessionid", "value": value, "url": live_server.url}])
    tab.goto(f"{live_server.url}/admin/console/acme/templates/?state=review")
    journey.click("link", "Open order")
    journey.click("button", "Approve and publish")
    expect(tab.get_by_text("2 drafts are approved, and active now.")).to_be_visible()
    active = TemplateVersion.objects.filter(template__name="order", state="ACTIVE")
    assert dict(active.values_list("template__language", "subject")) == {
        "en_US": "Your order", "de": "Ihre Bestellung",
    }  # fmt: skip
    assert journey.count <= 13


def test_undeclared_variable_is_declared_by_one_click_before_publishing(tab, journey, org):
    row = factories.template(org, name="order", html="<p>Hello</p>", text="Hello")
    journey.search("order")
    expect(tab.frame_locator("iframe[name=studio-rendering]").locator("p")).to_have_text("Hello")
    journey.fill(tab.get_by_role("textbox", name="HTML", exact=True), "<p>{{ number }}</p>")
    expect(tab.get_by_text("The text uses number, which isn't declared.")).to_be_visible()
    journey.click("button", "Publish")
    expect(tab.get_by_role("alert")).to_contain_text("number isn't declared.")
    journey.click("button", "Declare number")
    expect(tab.get_by_text("The text uses number")).to_have_count(0)
    journey.click("button", "Publish")
    expect(tab.get_by_text("Version 2 is active.", exact=True)).to_be_visible()
    active = row.template.versions.get(state="ACTIVE")
    assert active.variables["properties"] == {"number": {"type": "string"}}
    assert journey.count <= 6


def test_parts_of_an_email_are_shown_one_at_a_time(tab, org, live_server):
    factories.template(org, name="order", html="<p>Hello</p>", text="Hello")
    tab.goto(f"{live_server.url}/admin/console/acme/templates/order/")
    parts = tab.get_by_role("group", name="Parts of the email")
    expect(parts.get_by_role("button")).to_have_text(["HTML", "Plain text", "Use MJML"])
    html, text = tab.get_by_label("HTML", exact=True), tab.get_by_label("Plain text", exact=True)
    expect(html.first).to_be_visible()
    expect(text.first).to_be_hidden()
    parts.get_by_role("button", name="Plain text").click()
    expect(text.first).to_be_visible()
    expect(html.first).to_be_hidden()


def test_unsaved_text_comes_back_after_the_session(tab, journey, org, live_server):
    row = factories.template(org, name="order", html="<p>Hello</p>")
    tab.goto(f"{live_server.url}/admin/console/acme/templates/order/")
    expect(tab.frame_locator("iframe[name=studio-rendering]").locator("p")).to_have_text("Hello")
    Session.objects.all().delete()
    tab.get_by_label("Subject").first.fill("Typed too late")
    expect(tab.locator("#studio-state")).to_contain_text("you are logged out")
    tab.once("dialog", lambda dialog: dialog.accept())
    tab.reload()
    journey.log_in("owner", "secret")
    expect(tab.get_by_text("Your input is back")).to_be_visible()
    expect(tab.locator("#studio-state")).to_have_text("Draft 2 is saved.")
    assert row.template.versions.get(version=2).subject == "Typed too late"


def test_version_with_a_broken_variable_is_found_and_rolled_back(tab, journey, org):
    first = factories.template(org, name="order", html="<p>{{ number }}</p>")
    broken = {**factories.TEXTS["EMAIL"], "html": "<p>{{ numbr }}</p>"}
    templates.activate(templates.add_draft(first.template, broken))
    journey.search("order")
    line = tab.get_by_role("row").filter(has_text="− number")
    expect(line).to_contain_text("Version 2")
    journey.click("link", "Compare with version 1")
    journey.click("button", "Next change")
    expect(tab.get_by_text("Change 1 of 1.")).to_be_visible()
    expect(tab.locator(".cm-merge-a .cm-changedLine")).to_have_text("<p>{{ number }}</p>")
    expect(tab.locator(".cm-merge-b .cm-changedLine")).to_have_text("<p>{{ numbr }}</p>")
    tab.set_viewport_size({"width": 390, "height": 844})
    expect(tab.locator(".cm-deletedChunk")).to_have_text("<p>{{ number }}</p>")
    for dark in (False, True):
        tab.evaluate("d => document.documentElement.classList.toggle('dark', d)", dark)
        assert violations(tab, colours_only=True) == []
        expect(tab.locator(".cm-insertedLine")).to_have_css(
            "background-color", "rgb(18, 53, 31)" if dark else "rgb(220, 252, 231)"
        )
    tab.set_viewport_size({"width": 1440, "height": 900})
    expect(tab.locator(".cm-merge-b")).to_be_visible()
    journey.click("button", "Roll back to version 1")
    expect(tab.get_by_text("Version 1 is active.", exact=True)).to_be_visible()
    assert TemplateVersion.objects.get(state="ACTIVE", template__name="order").version == 1
    assert journey.count <= 5


def test_partial_is_written_kept_and_published(tab, journey, org):
    journey.click("link", "Templates")
    journey.click("link", "Partials")
    journey.click("button", "New partial")
    journey.fill(tab.locator("#new_name"), "footer")
    journey.click("button", "Add partial")
    journey.fill("Text", "Yours, {{ name }}")
    asked = []
    tab.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    tab.get_by_role("link", name="Partials", exact=True).click()
    expect(tab.get_by_label("Text", exact=True)).to_have_value("Yours, {{ name }}")
    assert asked == ["beforeunload"]  # the text isn't lost by a link
    journey.click("button", "Save draft")
    expect(tab.get_by_text("Draft 1 is saved. Templates don't use it yet.")).to_be_visible()
    journey.click("button", "Publish")
    expect(tab.get_by_text("Version 1 is active. Templates use it")).to_be_visible()
    assert journey.count <= 8


def test_files_are_previewed_and_imported(tab, journey, org, live_server):
    factories.template(org, name="order", html="<p>One</p>")
    head = "---\ncategory: TRANSACTIONAL\nsubject: Hi\n---\n"
    made = BytesIO()
    texts = {"order": "<p>Two</p>", "note": "<p>New</p>"}
    archives.write(
        (SourceFile(f"{name}/en_US.email.liquid", f"{head}{text}\n".encode())
         for name, text in texts.items()), made
    )  # fmt: skip
    tab.goto(f"{live_server.url}/admin/console/acme/templates/")
    journey.click("link", "Import files")
    file = {"name": "t.zip", "mimeType": "application/zip", "buffer": made.getvalue()}
    journey.choose_file("Archive", file)
    journey.click("button", "Show the changes")
    line = tab.get_by_role("row").filter(has_text="order/en_US.email.liquid")
    expect(line).to_contain_text("New draft")
    for dark in (False, True):
        tab.evaluate("d => document.documentElement.classList.toggle('dark', d)", dark)
        assert violations(tab, colours_only=dark) == []
    journey.click("button", "Import as drafts")
    expect(tab.get_by_text("Imported: 1 created, 1 changed, 0 unchanged.")).to_be_visible()
    assert TemplateVersion.objects.filter(template__name="order").count() == 2
    assert journey.count <= 4


def test_hostile_rendering_cannot_run_scripts_or_reach_the_console(
    chromium, cookie, org, live_server
):
    """Sixty hostile pieces in one document: only pictures over TLS are asked for."""
    console = live_server.url
    assert len(HOSTILE) >= 60
    html = "\n".join(HOSTILE).replace("CONSOLE", console) + f'<img src="{PICTURE}">'
    made = Template.objects.create(
        organization=org,
        name="hostile",
        language="en_US",
        channel="EMAIL",
        category="TRANSACTIONAL",
    )
    TemplateVersion.objects.create(
        template=made,
        version=1,
        state="ACTIVE",
        subject="S",
        html="{% raw %}" + html + "{% endraw %}",
    )
    answered = []
    context = chromium.new_context(locale="en-GB")
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": console}])
    tab = context.new_page()
    # What the policy blocks is announced as a request too, but nothing answers it.
    tab.on("requestfinished", lambda each: answered.append((each.url, each.frame.name)))
    context.route("https://**", lambda route: route.fulfill(body=b"", content_type="image/png"))
    with tab.expect_request(PICTURE):
        tab.goto(f"{console}/admin/console/acme/templates/hostile/")
    tab.frame_locator("iframe[name=studio-rendering]").locator("#last").wait_for(state="attached")
    inside = [url for url, frame in answered if frame == "studio-rendering"]
    own = {f"{console}/admin/console/acme/templates/hostile/frame/"}
    others = [url for url in inside if url not in own]
    assert [url for url in others if not url.startswith("https://")] == []
    assert [url for url in others if url.startswith(console)] == []
    assert tab.url == f"{console}/admin/console/acme/templates/hostile/"
    assert tab.evaluate("window.reached === undefined")
    context.close()


def test_ended_session_and_unreachable_server_are_reported_without_an_error(
    chromium, cookie, org, live_server
):
    """A log-in that has ended, a server that is away, and a page that is left meanwhile."""
    row = factories.template(org, name="order", html="<p>One</p>")
    context = chromium.new_context(locale="en-GB")
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    problems = []
    tab.on("console", lambda entry: problems.append(entry.text) if entry.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: problems.append(dialog.message))
    tab.goto(f"{live_server.url}/admin/console/acme/templates/order/")
    subject, state = tab.get_by_label("Subject"), tab.locator("#studio-state")
    logged_out = {"status": 200, "content_type": "text/html", "body": "<p>Log in</p>"}
    tab.route("**/draft/", lambda route: route.fulfill(**logged_out))
    tab.route("**/preview/", lambda route: route.fulfill(**logged_out))
    subject.fill("A")
    expect(state).to_contain_text("Not saved: you are logged out")
    expect(tab.locator("#studio-problems")).to_contain_text("you are logged out")
    tab.unroute_all()
    tab.route("**/draft/", lambda route: route.abort())
    subject.fill("B")
    expect(state).to_contain_text("Not saved: the server doesn't answer")
    tab.unroute_all()
    held = []
    tab.route("**/frame/", lambda route: held.append(route))
    with tab.expect_request("**/frame/"):
        subject.fill("C")
    expect(state).to_have_text("Draft 2 is saved.")
    tab.route("**/preview/", lambda route: held.append(route))
    with tab.expect_request("**/preview/"), tab.expect_response("**/draft/"):
        subject.fill("D")
    expect(state).to_have_text("Draft 2 is saved.")
    tab.goto(f"{live_server.url}/admin/console/acme/templates/")  # while both are under way
    expect(tab.get_by_role("link", name="New template")).to_be_visible()
    assert len(held) == 2
    assert [each for each in problems if not each.startswith("Failed to load resource")] == []
    assert row.template.versions.get(version=2).subject == "D"
    context.close()
