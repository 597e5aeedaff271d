"""No page for people runs scripts or styles that stand in the page itself."""

import pytest

from messaging.console.messages.message_page import CONTENT_POLICY
from messaging.console.studio.live import RENDERING_POLICY
from messaging.models import Message
from rme.tenants.models import User
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import form
from tests.rest import Api, message
from tests.tenants.admin.addresses import Addresses

PARTS = {
    "studio": ("/admin/console/acme/templates/", "/admin/console/acme/partials/"),
    "console": ("/admin/console/",),
    "account": ("/admin/account/", "/admin/login/", "/admin/password_change/"),
    "admin": ("/admin/",),
    "recipients": ("/p/",),
    "others": ("/",),
}
"""Where the pages of each part are; the first part that fits is a page's."""
FEWEST = {"studio": 6, "console": 40, "account": 10, "admin": 140, "recipients": 2, "others": 2}
"""How many pages of a part the test looks at, at least."""


def part_of(address):
    return next(part for part, starts in PARTS.items() if address.startswith(starts))


def directives(answer):
    """Return the sources of each directive of an answer's policy."""
    parts = (part.split() for part in answer["Content-Security-Policy"].split(";") if part.strip())
    return {name: sources for name, *sources in parts}


def is_page(answer):
    return answer["Content-Type"].startswith("text/html")


@pytest.mark.xdist_group("pages-filled")  # one worker fills it once
class TestFilled:
    """A test that looks at one filled organization."""

    def test_no_page_allows_inline_code_or_eval(self, root, filled):
        addresses = Addresses(filled, User.objects.get(username="root")).all()
        answers = {each: root.get(each) for each in addresses}
        pages = {
            address: directives(answer)
            for address, answer in answers.items()
            if answer.status_code == 200 and is_page(answer)
        }
        counts = dict.fromkeys(PARTS, 0)
        for address in pages:
            counts[part_of(address)] += 1
        assert {part: n for part, n in counts.items() if n < FEWEST[part]} == {}, counts
        unsafe = {
            (address, name, source)
            for address, policy in pages.items()
            for name, sources in policy.items()
            for source in sources
            if source.startswith("'unsafe-") or source in ("*", "data:", "blob:")
            if (name, source) != ("img-src", "data:")
        }
        assert unsafe == set()
        unbounded = [address for address, policy in pages.items() if "default-src" not in policy]
        assert unbounded == []


@pytest.mark.django_db
def test_framed_emails_may_have_styles_and_no_scripts(root, org):
    row = factories.template(org, name="order", html="<p>x</p>")
    content = {"subject": "Hi", "html": "<b>Hello</b>"}
    Api(org).send(message(factories.contact(org), template=None, content=content))
    stored = root.get(url("html", Message.objects.get().pk, 0))
    live = root.post(url("template_frame", "order"), form(row))
    for answer, policy in ((stored, CONTENT_POLICY), (live, RENDERING_POLICY)):
        assert (answer.status_code, answer["Content-Security-Policy"]) == (200, policy)
        found = directives(answer)
        assert found["default-src"] == ["'none'"]
        assert found.keys().isdisjoint({"script-src", "script-src-elem", "script-src-attr"})
        assert "'unsafe-eval'" not in policy
