"""Search everywhere: what is found by what is typed."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.models import Delivery, Message, Partial, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.crm import people
from rme.crm.models import Contact
from rme.tenants import organizations
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


def search(client, term, **fields):
    return client.get(reverse("console:search"), {"q": term, **fields})


def found(client, term):
    """Return the titles of results by kind; a single result is opened at once."""
    response = search(client, term)
    assert response.status_code == 200
    return {
        group.title: [result.title for result in group.results]
        for group in response.context["groups"]
    }


@pytest.mark.parametrize(
    "term",
    ["ada@simulator.rme.test", "ADA@Simulator.rme.test", "+12125550100", "(212) 555-0100",
     "Lovelace", "lovel", "ada", "Ada Lovelace", "lovelace ada", "{contact}"],
)  # fmt: skip
def test_a_person_is_found_and_opened(root, org, term):
    ada = factories.contact(org)
    factories.contact(org, first_name="Grace", last_name="Hopper", email="g@x.example", mobile="")
    response = search(root, term.format(contact=ada.pk))
    assert (response.status_code, response["Location"]) == (302, url("person", ada.pk))


def test_a_message_is_found_by_its_id_and_by_its_delivery(root, org):
    Api(org).send(message(factories.contact(org)))
    sent = Message.objects.get()
    for identifier in (sent.pk, Delivery.objects.get().pk, str(sent.pk).upper()):
        assert search(root, str(identifier))["Location"] == url("message", sent.pk)


def test_a_message_is_found_by_the_beginning_of_its_id(root, org):
    Api(org).send(message(factories.contact(org)))
    sent = Message.objects.get()
    for length in (8, 13, 35):
        assert search(root, str(sent.pk)[:length])["Location"] == url("message", sent.pk)
    assert search(root, sent.pk.hex[:20].upper())["Location"] == url("message", sent.pk)
    assert found(root, str(sent.pk)[:7]) == {}
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    assert found(stranger, str(sent.pk)[:13]) == {}


def test_results_are_listed_by_kind(root, org):
    factories.contact(org, first_name="Welcome")
    factories.contact(org, last_name="Welcome")
    ProviderAccount.objects.create(
        organization=org, name="welcome-mail", kind="simulator", channel="EMAIL"
    )
    Partial.objects.create(organization=org, name="welcome-footer", text="x")
    assert found(root, "welcome") == {
        "People": ["Ada Welcome", "Welcome Lovelace"],
        "Templates": ["welcome", "welcome", "welcome"],
        "Partials": ["welcome-footer"],
        "Provider accounts": ["welcome-mail"],
    }


def test_a_suppressed_address_without_a_contact_is_found(root, org):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="x@y.example", reason="STOP"
    )
    assert search(root, "x@y.example")["Location"] == url("suppression", row.pk)


@pytest.mark.parametrize("term", ["nobody", "%", "_", "'", "\0", "x" * 400])
def test_unknown_term_finds_nothing(root, org, term):
    factories.contact(org)
    assert found(root, term) == {}


def test_search_finds_nothing_of_another_organization(org):
    ada = factories.contact(org)
    Api(org).send(message(ada))
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    for term in ("ada@simulator.rme.test", "Lovelace", str(ada.pk), str(Message.objects.get().pk)):
        response = search(stranger, term, organization="acme")
        assert (response.status_code, response.context["groups"]) == (200, [])


def test_a_person_without_an_organization_may_not_search(org):
    assert search(person("nobody"), "ada").status_code == 403


def test_a_name_is_found_by_an_index(org):
    factories.contacts(org, 1000)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Contact._meta.db_table}")  # plans depend on no other test's rows
    plans = []

    def explain(execute, statement, params, many, context):
        execute(f"EXPLAIN {statement}", params, many, context)
        plans.append([line.strip() for (line,) in context["cursor"].fetchall()])
        return execute(statement, params, many, context)

    organizations.get(org.pk)
    with connection.execute_wrapper(explain):
        found = people.find(org.pk, "last99", limit=20)
    assert len(found) == 11
    (plan,) = [plan for plan in plans if any("last99" in line for line in plan)]
    conditions = [line for line in plan if line.startswith("Index Cond:")]
    for name, condition in zip(("last_name", "first_name"), conditions, strict=True):
        assert any(f"on contact_by_{name} " in line for line in plan)
        assert f"lower(({name})::text) ~>=~ 'last99'" in condition
        assert f"lower(({name})::text) ~<~ 'last99" in condition


def test_a_search_asks_as_often_for_many_results_as_for_few(root, org):
    counts = []
    for count in (2, 8):
        factories.contacts(org, count)
        search(root, "first")
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            search(root, "first")
        counts.append(len(captured))
    assert counts == [11, 11]


@pytest.mark.parametrize(
    "path",
    [url("messages"), "/admin/", "/admin/crm/event/", "/admin/crm/event/add/",
     "/admin/account/2fa/", "/admin/password_change/"],
)  # fmt: skip
def test_every_page_has_the_one_search_field(root, org, path):
    shown = root.get(path).content.decode()
    assert shown.count('id="console-search"') == 1
    assert 'id="nav-filter"' not in shown
