"""The menu, the switcher and the account menu, as each role sees them."""

import re

import pytest
from django.contrib import admin
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, resolve

from rme.sidebar import shell
from rme.sidebar.menu import MENU
from rme.tenants.models import Membership, User
from tests import factories
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
ENTRIES = [entry for _, entries in MENU for entry in entries]
MOST_ENTRIES = 20


@pytest.fixture
def org():
    return factories.organization()


@pytest.fixture
def root():
    return person("root", is_superuser=True)


def shown_links(client, path="/admin/"):
    """Return the titles and addresses in the menu of a page."""
    nav = re.search(r"c-nav-groups.*?c-nav-end", client.get(path).content.decode(), re.DOTALL)
    assert nav is not None
    return dict(re.findall(r'<a href="([^"]+)"[^>]*><span[^>]*>\w+</span>([^<]+)</a>', nav[0]))


def test_menu_has_at_most_twenty_entries_and_no_twins():
    pages = [page for entry in ENTRIES for page in entry.pages]
    lists = [page.route or page.models[0] for page in pages]
    assert len(ENTRIES) <= MOST_ENTRIES
    assert len({entry.title for entry in ENTRIES}) == len(ENTRIES)
    assert len(set(lists)) == len(lists)


@pytest.mark.parametrize("role", [*Membership.Role.values, "SUPERUSER"])
def test_each_link_of_a_role_opens(org, role, root):
    client = root if role == "SUPERUSER" else person("p", org, role)
    links = shown_links(client)
    answers = {url: client.get(url, follow=True).status_code for url in links}
    assert links
    assert set(answers.values()) == {200}


def test_each_page_of_the_console_belongs_to_one_entry():
    (console,) = [
        each for each in get_resolver().url_patterns if getattr(each, "app_name", "") == "console"
    ]
    names = {f"console:{name}" for name in console.reverse_dict if isinstance(name, str)}
    outside = ("first_", "search", "export", "html", "frame", "preview", "draft", "publish")
    pages = {name for name in names if not any(each in name for each in outside)}
    pages -= {f"console:{each}" for each in ("sample_contacts", "filter", "privacy_file")}
    listed = [
        route
        for entry in ENTRIES
        for page in entry.pages
        for route in (page.route, *page.lower_routes)
        if route.startswith("console:")
    ]
    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


def test_each_model_with_a_list_belongs_to_one_entry():
    models = [model for entry in ENTRIES for page in entry.pages for model in page.models]
    in_console = {
        model._meta.label
        for model, page in admin.site._registry.items()
        if hasattr(page, "console_list")
    }
    registered = {model._meta.label for model in admin.site._registry}
    ours = {label for label in registered if not label.startswith(("auth.", "oauth2_provider."))}
    assert ours - in_console - set(models) == set()
    assert len(models) == len(set(models))


def test_switcher_leads_to_the_same_page_of_another_organization(org, root):
    factories.organization("other")
    for path in ("/admin/console/acme/domains/", "/admin/messaging/pause/?organization=acme"):
        other = path.replace("acme", "other")
        assert f'<a href="{other}">Other</a>' in root.get(path).content.decode()


def test_switcher_leads_to_a_page_that_the_role_there_may_open(org):
    client = person("p", org, "OWNER")
    other = factories.organization("other")
    Membership.objects.create(user=User.objects.get(), organization=other, role="APPROVER")
    shown = client.get("/admin/console/acme/domains/").content.decode()
    assert '<a href="/admin/console/other/templates/">Other</a>' in shown


def test_switcher_offers_no_organization_of_others(org, root):
    factories.organization("other")
    shown = person("p", org, "OWNER").get("/admin/").content.decode()
    assert "Other" not in shown


def test_shell_takes_one_statement_whatever_the_number_of_organizations(org):
    user = User.objects.create_superuser("root")
    counts = []
    for number in (1, 30):
        for index in range(number):
            factories.organization(f"o{number}-{index}")
        request = RequestFactory().get("/admin/console/acme/messages/")
        request.user, request.session = user, {}
        request.resolver_match = resolve(request.path)
        shell(request)  # the organization's record is cached
        with CaptureQueriesContext(connection) as captured:
            assert len(shell(request).other_organizations) >= number
        counts.append(len(captured))
    assert counts == [1, 1]


class CountedRequest(WSGIRequest):
    """A request that counts how often its page is asked for."""

    reads = 0

    @property
    def resolver_match(self):
        self.reads += 1
        return resolve(self.path)

    @resolver_match.setter
    def resolver_match(self, match):
        pass


def test_shell_looks_for_the_shown_page_once_whatever_the_number_of_organizations(org):
    user = User.objects.create_superuser("root")
    counts = []
    for number in (1, 30):
        for index in range(number):
            factories.organization(f"o{number}-{index}")
        request = CountedRequest(RequestFactory().get("/admin/console/acme/messages/").environ)
        request.user, request.session = user, {}
        assert len(shell(request).other_organizations) >= number
        counts.append(request.reads)
    assert counts[0] == counts[1] > 0


def test_only_lists_and_forms_of_models_load_scripts_of_the_theme(org, root):
    def scripts(path):
        shown = root.get(path).content.decode()
        assert "console/appearance" in shown
        return re.findall(r'<script src="[^"]*unfold/js/([a-z/.]+?)(?:\.[0-9a-f]{12})?\.js"', shown)

    pages = ["/admin/", "/admin/console/acme/messages/", "/admin/account/profile/"]
    assert [scripts(path) for path in pages] == [[], [], []]
    theme = [*(f"alpine/alpine{each}" for each in (".anchor", ".persist", ".resize", "")), "app"]
    for path in ("/admin/messaging/pause/?organization=acme", "/admin/tenants/user/"):
        assert scripts(path) == theme


def test_no_list_or_form_of_a_model_needs_the_scripts_that_are_left_out():
    """Sorting of rows, pages of inlines and dialogs of actions: Alpine's plugin, and htmx."""
    pages = [*admin.site._registry.values()]
    pages += [inline for page in pages for inline in getattr(page, "inlines", ())]
    needs = ("ordering_field", "per_page")
    assert [page for page in pages if any(getattr(page, each, None) for each in needs)] == []


def test_account_menu_leads_to_profile_security_and_sessions(org):
    client = person("p", org, "SUPPORT")
    shown = client.get("/admin/").content.decode()
    paths = ["/admin/account/profile/", "/admin/account/2fa/", "/admin/account/sessions/"]
    assert [path for path in paths if f'href="{path}"' not in shown] == []
    assert [client.get(path).status_code for path in paths] == [200] * 3


def test_page_has_landmarks_a_skip_link_and_breadcrumbs(org, root):
    shown = root.get("/admin/console/acme/webhooks/new/").content.decode()
    assert shown.count("<main ") == 1
    assert '<a class="c-skip" href="#content">' in shown
    crumbs = re.search(r'aria-label="Breadcrumbs".*?</nav>', shown, re.DOTALL)
    assert crumbs is not None
    assert re.findall(r">([^<>\n]+)</a>", crumbs[0]) == ["Acme", "Webhooks"]
