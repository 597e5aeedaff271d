"""The search of all pages: what each role finds, and what its field shows."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.models import Message, ProviderAccount
from rme.core.cache import TtlCache
from rme.crm.models import Platform
from rme.tenants.models import Membership, User
from tests import factories
from tests.messaging.console.actions.scene import LATER
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def org():
    return factories.organization()


def typed(client, term, **fields):
    """Return the titles and addresses that the field shows, by kind."""
    answer = client.get(reverse("search_results"), {"q": term, **fields})
    assert answer.status_code == 200
    return {
        group.title: {result.title: result.url for result in group.results}
        for group in answer.context["groups"]
    }


def shown(client, term, **fields):
    return client.get(reverse("search_results"), {"q": term, **fields}).content.decode()


ROLES_THAT_MAY = {
    "pause sms": {Role.OWNER, Role.OPERATOR},
    "new template": {Role.OWNER, Role.OPERATOR, Role.TEMPLATE_EDITOR},
    "send a mess": {Role.OWNER, Role.OPERATOR},
    "invite": {Role.OWNER},
    "add an api key": {Role.OWNER, Role.DEVELOPER},
    "add twilio": {Role.OWNER},
    "failed": {Role.OWNER, Role.OPERATOR, Role.VIEWER, Role.SUPPORT, Role.DEVELOPER},
    "providers": {Role.OWNER, Role.OPERATOR, Role.VIEWER, Role.DEVELOPER},
    "audit": {Role.OWNER},
    "your password": set(Role),
}


@pytest.mark.parametrize("term", ROLES_THAT_MAY)
def test_pages_and_commands_are_those_of_the_role(org, term):
    clients = {role: person(role, org, role) for role in Role.values}
    found = {role: typed(client, term) for role, client in clients.items()}
    assert {role for role, groups in found.items() if groups} == ROLES_THAT_MAY[term]
    for role, groups in found.items():
        for links in groups.values():
            for url in links.values():
                assert clients[role].get(url, follow=True).status_code == 200, (role, url)


@pytest.mark.parametrize("role", Role.values)
def test_each_command_and_page_of_a_role_opens(org, role):
    client = person("p", org, role)
    urls = {
        url
        for letter in "abcdefghijklmnopqrstuvwxyz"
        for title, links in typed(client, letter).items()
        if title in ("Pages", "Commands")
        for url in links.values()
    }
    assert len(urls) > 5
    assert {
        url: status for url in urls if (status := client.get(url, follow=True).status_code) != 200
    } == {}


def test_search_without_a_term_offers_pages_and_commands(org):
    groups = typed(person("p", org, Role.OWNER), "")
    assert list(groups) == ["Pages", "Commands"]
    assert list(groups["Pages"])[:2] == ["Home", "Messages"]


@pytest.mark.parametrize(
    ("command", "route", "query"),
    [
        ("Pause SMS", "console:pause", {"channel": ["SMS"]}),
        ("New partial", "console:partials", {"new": ["1"]}),
    ],
)
def test_command_opens_its_page_filled_in(org, command, route, query):
    url = typed(person("p", org, Role.OWNER), command)["Commands"][command]
    assert urlsplit(url).path == reverse(route, args=["acme"])
    assert parse_qs(urlsplit(url).query) == query


def test_page_whose_title_begins_with_the_term_comes_before_people(org):
    factories.contact(org, first_name="Webster")
    client = person("p", org, Role.OWNER)
    assert list(typed(client, "web")) == ["Pages", "People", "Actions", "Commands"]
    assert list(typed(client, "webst")) == ["People", "Actions"]


def test_command_for_stored_contacts_is_not_offered_with_a_remote_platform(org):
    client = person("p", org, Role.OWNER)
    assert "Add a contact" in typed(client, "contact")["Commands"]
    Platform.objects.create(organization=org, kind="odoo", credentials="{}")
    TtlCache.clear_all()
    assert "Add a contact" not in typed(client, "contact").get("Commands", {})


def test_template_editor_finds_templates_and_no_people(org):
    factories.welcome(org)
    factories.contact(org, first_name="Welcome")
    assert list(typed(person("p", org, Role.TEMPLATE_EDITOR), "welcome")) == ["Templates"]
    assert list(typed(person("s", org, Role.SUPPORT), "welcome")) == ["People"]


def test_one_person_or_message_comes_with_actions_of_the_role(org):
    factories.welcome(org)
    ada = factories.contact(org)
    api = Api(org)
    for fields in ({}, {"schedule": LATER}):
        assert api.send(message(ada, **fields)).status_code == 202
    sent, scheduled = Message.objects.order_by("pk")
    owner, viewer = person("o", org, Role.OWNER), person("v", org, Role.VIEWER)
    assert typed(owner, "lovel")["Actions"] == {
        "Send message to Ada Lovelace": f"/admin/console/acme/send/?recipient={ada.pk}",
        "Record opt-out for Ada Lovelace": f"/admin/console/acme/people/{ada.pk}/?open=opt_out",
    }
    url = f"/admin/console/acme/messages/{scheduled.pk}/?open=cancel"
    for term in (str(scheduled.pk), scheduled.pk.hex[:31]):
        assert typed(owner, term)["Actions"] == {"Cancel this scheduled message": url}
        assert "Actions" not in typed(viewer, term)
    assert re.search(r'id="cancel"[^>]* open', owner.get(url).content.decode())
    assert "Actions" not in typed(owner, str(sent.pk))
    assert "Actions" not in typed(viewer, "lovel")
    factories.contact(org, first_name="Bea")
    assert "Actions" not in typed(owner, "lovel")


def test_masked_addresses_stay_masked_and_are_not_found_by_parts(org):
    factories.contact(org, email="countess.a@x.example", mobile="+12125550123")
    support, owner = person("s", org, Role.SUPPORT), person("o", org, Role.OWNER)
    assert "c…@x.example, +12…23" in shown(support, "Lovelace")
    assert "countess.a@x.example, +12125550123" in shown(owner, "Lovelace")
    for part in ("countess", "countess.a@x", "212555", "0123"):
        assert typed(support, part) == {}
        assert list(typed(owner, part)) == ["People", "Actions"]
    assert list(typed(support, "countess.a@x.example")) == ["People"]


def test_stranger_finds_nothing_of_another_organization(org):
    ada = factories.contact(org)
    factories.welcome(org)
    account = {"kind": "simulator", "channel": "EMAIL", "name": "mail-west"}
    ProviderAccount.objects.create(organization=org, **account)
    Api(org).send(message(ada))
    stranger = person("s", factories.organization("other"), Role.OWNER)
    key = Message.objects.get().pk.hex
    terms = ["lovelace", ada.email, ada.mobile, ada.email[:5], ada.mobile[-5:], str(ada.pk)]
    terms += [key[:12], key[-12:], str(Message.objects.get().pk), "welcome", "mail-west", "acme"]
    assert [term for term in terms if typed(stranger, term, organization="acme")] == []


def test_stranger_to_all_organizations_may_not_search(org):
    client = person("nobody")
    assert client.get(reverse("search_results"), {"q": "a"}).status_code == 403
    assert client.get(reverse("search"), {"q": "a"}).status_code == 403


def test_search_needs_a_log_in(client, org):
    for name in ("search", "search_results"):
        answer = client.get(reverse(name), {"q": "a"})
        assert (answer.status_code, answer["Location"][:13]) == (302, "/admin/login/")


def test_organizations_are_found_by_name_and_id(org):
    client = person("p", org, Role.OWNER)
    for index in range(60):
        row = factories.organization(f"o{index}", name=f"Clinic {index:02}")
        Membership.objects.create(user=User.objects.get(), organization=row, role=Role.OWNER)
    factories.organization("hidden", name="Clinic hidden")
    kind = {"kind": "organizations", "organization": "acme"}
    assert typed(client, "clinic 57", **kind) == {
        "Organizations": {"Clinic 57": "/admin/?organization=o57"}
    }
    assert list(typed(client, "o59", **kind)["Organizations"]) == ["Clinic 59"]
    assert typed(client, "hidden", **kind) == {}
    assert "Organizations" in typed(client, "clinic 57", organization="acme")


def test_found_organization_opens_the_same_page_or_its_first_one(org):
    client = person("p", org, Role.OWNER)
    for name, role in (("o1", Role.OWNER), ("o2", Role.APPROVER)):
        row = factories.organization(name, name=f"Clinic {name}")
        Membership.objects.create(user=User.objects.get(), organization=row, role=role)
    page = client.get(reverse("console:domains", args=["acme"])).content.decode()
    ((field, key),) = set(re.findall(r'<input type="hidden" name="(page)" value="([^"]+)">', page))
    for fields in ({}, {"kind": "organizations"}):
        assert typed(client, "clinic", **fields, **{field: key})["Organizations"] == {
            "Clinic o1": "/admin/console/o1/domains/",
            "Clinic o2": "/admin/console/o2/templates/",
        }
    assert typed(client, "clinic o1", page="\0'x")["Organizations"] == {
        "Clinic o1": "/admin/?organization=o1"
    }


def test_switcher_has_a_search_from_ten_other_organizations_on(org):
    client = person("root", is_superuser=True)
    has_search = []
    for number in (9, 1):
        for index in range(number):
            factories.organization(f"o{number}-{index}")
        page = client.get("/admin/").content.decode()
        has_search.append('data-filters="organization-list"' in page)
    assert has_search == [False, True]


def test_search_of_organizations_works_without_scripts(org):
    client = person("root", is_superuser=True)
    for index in range(12):
        factories.organization(f"o{index}", name=f"Clinic {index:02}")
    page = client.get(reverse("search"), {"q": "clinic 0", "kind": "organizations"})
    assert [each.title for each in page.context["groups"][0].results] == [
        f"Clinic {index:02}" for index in range(10)
    ]
    assert '<input type="hidden" name="kind" value="organizations">' in page.content.decode()


def test_typing_does_not_change_the_organization_of_later_pages(org):
    client = person("p", org, Role.OWNER)
    other = factories.organization("other")
    Membership.objects.create(user=User.objects.get(), organization=other, role=Role.OWNER)
    client.get(reverse("console:messages", args=["acme"]))
    typed(client, "a", organization="other")
    assert client.get("/admin/console/messages/")["Location"] == "/admin/console/acme/messages/"


def test_results_name_their_options_once_and_escape_what_is_stored(org):
    factories.contact(org, first_name="<b>Ada", last_name='"Quote')
    html = shown(person("p", org, Role.OWNER), "quote")
    assert "&lt;b&gt;Ada &quot;Quote" in html
    keys = re.findall(r' id="([^"]+)"', html)
    assert len(keys) == len(set(keys)) == html.count('role="option"') + html.count('role="group"')
    assert "Search everywhere for “quote”" in html


@pytest.mark.parametrize(
    ("term", "statements"), [("", 4), ("first", 9), ("first1@x", 8), ("0123", 9), ("deadbeef", 11)]
)
def test_typing_takes_the_same_statements_for_many_results(org, term, statements):
    client, counts = person("p", org, Role.OWNER), []
    for count in (1, 3):
        factories.contacts(org, count)
        typed(client, term)
        with CaptureQueriesContext(connection) as captured:
            typed(client, term)
        counts.append(len(captured))
    assert counts == [statements, statements]
