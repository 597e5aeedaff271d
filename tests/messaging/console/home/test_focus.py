"""Home stays with the organization that it shows, whatever other tabs show."""

import re
from html import unescape

import pytest

from rme.tenants.models import Membership, User
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.statistics.scene import count
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
HOME = "/admin/"
POLL = {"X-Rme-Poll": "1"}


def polled_address(answer):
    """Return the address at which a page reads itself again."""
    (address,) = re.findall('id="home"[^>]* data-address="([^"]+)"', answer.content.decode())
    return unescape(address)


@pytest.fixture
def other(org):
    return factories.organization("other")


def test_polled_address_and_links_name_the_organization(root, org, other):
    count()
    root.get(url("messages"))
    answer = root.get(HOME, {"span": "7d", "mode": "test"})
    assert polled_address(answer) == "/admin/?organization=acme&span=7d&mode=test"
    switches = re.findall('<nav class="c-switch".*?</nav>', answer.content.decode())
    links = re.findall('href="([^"]+)"', unescape("".join(switches)))
    assert len(links) >= 4
    assert [link for link in links if not link.startswith("?organization=acme&span=")] == []
    assert answer.content.decode().count('href="/admin/?organization=acme">Acme</a>') == 1


def test_poll_shows_its_organization_and_remembers_nothing(root, org, other):
    address = polled_address(root.get(HOME, {"organization": "acme"}))
    root.get(url("messages", org="other"))
    assert root.get(address, headers=POLL).context["organization"].id == "acme"
    assert root.get(HOME).context["organization"].id == "other"


def test_refused_page_leads_to_home_of_the_organization(root, org, other):
    root.get(url("messages", org="other"))
    answer = root.get("/admin/console/other/providers/4711/")
    assert answer.status_code == 404
    assert 'href="/admin/?organization=other">Go to Home</a>' in answer.content.decode()


def test_home_names_the_organization_that_it_shows(org, other):
    client = person("p", org, "VIEWER")
    Membership.objects.create(user=User.objects.get(), organization=other, role="APPROVER")
    page = client.get(url("templates", org="other")).content.decode()
    assert '<a href="/admin/">Other</a>' in page  # whose figures this person may not see
    answer = client.get(HOME)
    assert answer.context["organization"].id == "acme"
    chosen = '<a href="/admin/?organization=acme" aria-current="true">Acme</a>'
    assert chosen in answer.content.decode()
