"""Every page for people, of the table of routes: WCAG 2.2 A and AA, and no sideways scrolling.

Each page is opened once, and then shown wide and narrow, light and dark.
"""

import pytest

from rme.tenants.models import Membership, User
from tests import factories
from tests.admin.addresses import Addresses
from tests.admin.scene import fill
from tests.browser.axe import scrolls_sideways, violations
from tests.messaging.console.test_actions import LATER
from tests.rest import Api, message
from tests.tenants.access.scene import browser, code_of, log_in, with_totp

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
_SIGNATURE = """() => [...new Set(
  [...document.querySelectorAll("#nav-sidebar *")].map(
    (each) => `${each.tagName} ${each.className} ${each.ariaHidden} ${each.role}`)
)].sort().join(", ")"""
# Colours must not be on their way from light to dark while they are measured.
STILL = "*, ::before, ::after { transition: none !important; animation: none !important; }"
_ADD_STYLE = """text => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [sheet];
}"""


@pytest.fixture
def org(live_server, transactional_db):
    row = factories.organization()
    factories.welcome(row)
    return row


def cookies(org, name, *, protected):
    """Log a superuser in, who is an owner, and return the session's cookie."""
    user = User.objects.create_superuser(name, f"{name}@example.com", "correct horse battery")
    Membership.objects.create(user=user, organization=org, role="OWNER")
    client = browser()
    if protected:
        with_totp(user)
    log_in(client, name)
    if protected:
        client.post("/admin/account/2fa/authenticate/", {"code": code_of()})
    return client.cookies["sessionid"].value


def test_every_page(chromium, live_server, org, settings):
    settings.MAIL_ENABLED = True  # for the pages of a forgotten password
    fill(org)
    api = Api(org)
    ada = factories.contact(org)
    api.send(message(ada, channel="SMS", schedule=LATER))
    org.suppression_set.create(channel="EMAIL", address=ada.email, reason="STOP")
    api.send(message(ada))
    people = [cookies(org, "root", protected=True), cookies(org, "new", protected=False), None]
    left = Addresses(org, User.objects.get(username="root")).all()
    found, seen, signatures = [], [], set()
    for cookie in people:
        context = chromium.new_context(locale="en-GB", viewport={"width": 1440, "height": 900})
        if cookie:
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        problems = []
        page.on("console", lambda e, p=problems: p.append(e.text) if e.type == "error" else None)
        page.on("pageerror", lambda error, p=problems: p.append(str(error)))
        for path in list(left):
            problems.clear()
            if opens(page, live_server.url, path):
                left.remove(path)
                seen.append(path)
                found += [(path, *each) for each in faults(page, signatures)]
                found += [(path, each) for each in problems]
        context.close()
    import json

    json.dump([found, seen, left], open("/tmp/b5/j_found.json", "w"), default=str)
    assert found == []


def opens(page, url, path):
    """Open an address; return whether it is a page, and not a file, a redirect or a refusal."""
    answer = page.request.get(url + path, max_redirects=0)
    if answer.status != 200 or "<html" not in answer.text():
        return False
    page.goto(url + path)
    return True


def faults(page, signatures):
    """Return what is wrong with a page at both widths and in both colours."""
    page.evaluate(_ADD_STYLE, STILL)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("d => document.documentElement.classList.toggle('dark', d)", scheme == "dark")
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            where = (scheme, width)
            # The sidebar is the same on all pages, but for which of its entries is the current one.
            sidebar = (*where, page.evaluate(_SIGNATURE))
            context = {"exclude": ["#nav-sidebar"]} if sidebar in signatures else None
            signatures.add(sidebar)
            broken = violations(page, context, colours_only=scheme == "dark")
            found += [(*where, *each) for each in broken]
            found += [(*where, "scrolls")] if scrolls_sideways(page) else []
    return found
