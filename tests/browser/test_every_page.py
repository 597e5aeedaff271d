"""Every page for people, of the table of routes: WCAG 2.2 A and AA, and no sideways scrolling.

Each page is opened once, and then shown wide and narrow, light and dark. A page is left out if it
has nothing but shapes of elements that pages before it had.
"""

from datetime import timedelta

import pytest

from messaging.content import templates
from messaging.models import Delivery, Pause, ProviderAccount, TemplateVersion
from rme.core.db import clock
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser.axe import scrolls_sideways, violations
from tests.browser.shapes import shapes_of
from tests.messaging.console.actions.scene import LATER
from tests.messaging.statistics.scene import attempt, count
from tests.rest import Api, message, work
from tests.tenants.access.scene import browser, code_of, log_in, with_totp
from tests.tenants.admin.addresses import Addresses
from tests.tenants.admin.scene import fill

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
WIDE, NARROW = 1440, 390
# Colours must not be on their way from light to dark while they are measured.
STILL = "*, ::before, ::after { transition: none !important; animation: none !important; }"
_ADD_STYLE = """text => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [sheet];
}"""
_SIDEBAR = """() => [...new Set(
  [...document.querySelectorAll("#nav-sidebar *")].map((each) => each.className)
)].sort().join()"""
_LEAVE = "() => window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
OTHERS = ["#swagger-ui"]
"""Elements that another project draws, and that cannot be mended here."""


@pytest.fixture
def org(live_server, transactional_db, settings):
    settings.MAIL_ENABLED = True  # for the pages of a forgotten password
    row = factories.organization()
    factories.welcome(row)
    return row


def scene(org):
    """Make messages with each outcome that looks different, and fill the operations home."""
    fill(org)
    api, ada = Api(org), factories.contact(org)
    api.send(message(ada))
    work()
    api.send(message(ada, channel="SMS", schedule=LATER))
    written = TemplateVersion.objects.get(template__name="welcome", template__channel="EMAIL")
    templates.add_draft(written.template, {"subject": "New", "html": "<p>New</p>"})  # to compare
    org.suppression_set.create(channel="EMAIL", address=ada.email, reason="STOP")
    api.send(message(ada))
    Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    sent = Delivery.objects.filter(status="DELIVERED").values().first()
    now = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=2)
    for outcome in ("Accepted", "Retryable"):
        attempt(sent, outcome, now, account_id=ProviderAccount.objects.first().pk)
    count()
    assert set(Delivery.objects.values_list("status", flat=True)) >= {
        "DELIVERED", "SCHEDULED", "BLOCKED",
    }  # fmt: skip


def superuser(org, name, *, protected):
    """Log in a superuser, who is an owner too, with or without a second factor."""
    user = User.objects.create_superuser(name, f"{name}@example.com", "correct horse battery")
    Membership.objects.create(user=user, organization=org, role="OWNER")
    client = browser()
    if protected:
        with_totp(user)
    log_in(client, name)
    if protected:
        client.post("/admin/account/2fa/authenticate/", {"code": code_of()})
    return client


def html_of(client, path):
    """Return the document at an address; empty for files, redirects, refusals and fragments."""
    answer = client.get(path)
    if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
        return ""
    text = answer.content.decode()
    return text if "<html" in text else ""


def new_pages(client, left, seen):
    """Yield the pages that a person may open and that have a shape that no page had before.

    The page with the most new shapes is next, so that few pages show all of them.
    """
    found = {path: shapes_of(html) for path in left if (html := html_of(client, path))}
    left[:] = [path for path in left if path not in found]
    while found:
        path = max(found, key=lambda each: len(found[each] - seen))
        if found[path] <= seen:
            return
        seen |= found.pop(path)
        yield path


def faults(page, sidebars):
    """Return what is wrong with a page at both widths and in both colours.

    Each change costs a new style of all elements. So a page begins as the one before it ended, in
    light colours and at either width, and only one thing changes at a time.
    """
    page.evaluate(_ADD_STYLE, STILL)
    found = []
    first = page.viewport_size["width"]
    last = WIDE + NARROW - first
    for scheme, width in (("light", first), ("dark", first), ("dark", last), ("light", last)):
        dark = scheme == "dark"
        if width != page.viewport_size["width"]:
            page.set_viewport_size({"width": width, "height": 900})
        else:
            page.emulate_media(color_scheme=scheme)
        page.evaluate("d => document.documentElement.classList.toggle('dark', d)", dark)
        # The sidebar is the same on all pages, but for which of its entries is the current one.
        sidebar = (scheme, width, page.evaluate(_SIDEBAR))
        known = ["#nav-sidebar"] if sidebar in sidebars else []
        sidebars.add(sidebar)
        context = {"exclude": [*known, *OTHERS]}
        broken = violations(page, context, colours_only=dark)
        found += [(scheme, width, *each) for each in broken]
        found += [(scheme, width, "scrolls")] if scrolls_sideways(page) else []
    return found


def test_every_page(chromium, live_server, org):
    scene(org)
    people = [superuser(org, "root", protected=True), superuser(org, "new", protected=False)]
    every = Addresses(org, User.objects.get(username="root")).all()
    every.append("/admin/console/search/?q=e")
    left, seen, sidebars, found, opened = list(every), set(), set(), [], []
    for client in (*people, browser()):
        context = chromium.new_context(locale="en-GB", viewport={"width": WIDE, "height": 900})
        if cookie := client.cookies.get("sessionid"):
            value = {"name": "sessionid", "value": cookie.value, "url": live_server.url}
            context.add_cookies([value])
        page, problems = context.new_page(), []
        page.set_default_timeout(30_000)
        page.on("console", lambda e, to=problems: to.append(e.text) if e.type == "error" else None)
        page.on("pageerror", lambda error, to=problems: to.append(str(error)))
        for path in new_pages(client, left, seen):
            page.goto(live_server.url + path)
            page.wait_for_selector("main", state="attached")  # the API reference draws its own
            opened.append(path)
            found += [] if page.evaluate(_LEAVE) else [(path, "asks before anything was typed")]
            found += [(path, *each) for each in faults(page, sidebars)]
            found += [(path, "console", each) for each in problems]
            problems.clear()
        context.close()
    assert found == []
    assert len(every) - len(left) > 200
    assert len(opened) > 70
    assert {"/admin/", "/admin/login/", "/rme/v1/docs"}.isdisjoint(left)
