"""Search everywhere: what is found by what is typed."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.models import Delivery, Message, Partial, ProviderAccount, Suppression
from messaging.store.reports import message_ids
from rme.core.cache import TtlCache
from rme.core.db.statement_timeout import StatementLate
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


def search(client, term, **fields):
    return client.get(reverse("search"), {"q": term, **fields})


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


@pytest.mark.parametrize("part", ["{0}", "{1}", "{2}", "{3}", "{4}"])
def test_message_is_found_by_any_part_of_its_id(root, org, part):
    Api(org).send(message(factories.contact(org)))
    Api(org).send(message(factories.contact(org)))
    key = str(Message.objects.order_by("-pk").first().pk)
    parts = (key[:30], key[-12:], key.replace("-", "")[-17:], key[20:], key[-8:].upper())
    assert search(root, part.format(*parts))["Location"] == url("message", key)
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    assert found(stranger, part.format(*parts)) == {}


def test_page_says_how_many_messages_were_searched_for_a_part_of_an_id(root, org):
    assert "the latest 100,000 messages" in search(root, "abcdef0123").content.decode()
    assert "the latest" not in search(root, "abcdef").content.decode()


def test_search_for_a_part_of_an_id_ends_in_time(org):
    with pytest.raises(StatementLate):
        message_ids.with_part(org.pk, "abcdef01", limit=1, until=time.monotonic())


def test_results_are_listed_by_kind(root, org):
    factories.contact(org, first_name="Welcome")
    factories.contact(org, last_name="Welcome")
    ProviderAccount.objects.create(
        organization=org, name="welcome-mail", kind="simulator", channel="EMAIL"
    )
    Partial.objects.create(organization=org, name="welcome-footer", text="x")
    assert found(root, "welcome") == {
        "People": ["Ada Welcome", "Welcome Lovelace"],
        "Templates": ["welcome"],
        "Partials": ["welcome-footer"],
        "Provider accounts": ["welcome-mail"],
    }


def test_a_suppressed_address_without_a_contact_is_found(root, org):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="x@y.example", reason="STOP"
    )
    assert search(root, "x@y.example")["Location"] == url("suppression", row.pk)


@pytest.mark.parametrize("term", ["nobody", "%", "_", "'", "x" * 400])
def test_unknown_term_finds_nothing(root, org, term):
    factories.contact(org)
    assert found(root, term) == {}


@pytest.mark.parametrize("term", ["", " ", "\0"])
def test_page_without_a_term_offers_pages_and_commands(root, org, term):
    assert list(found(root, term)) == ["Pages", "Commands"]


def test_search_finds_nothing_of_another_organization(org):
    ada = factories.contact(org)
    Api(org).send(message(ada))
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    for term in ("ada@simulator.rme.test", "Lovelace", str(ada.pk), str(Message.objects.get().pk)):
        response = search(stranger, term, organization="acme")
        assert (response.status_code, response.context["groups"]) == (200, [])


def test_a_person_without_an_organization_may_not_search(org):
    assert search(person("nobody"), "ada").status_code == 403


def test_a_search_asks_as_often_for_many_results_as_for_few(root, org):
    counts = []
    for count in (2, 6):
        factories.contacts(org, count)
        search(root, "first")
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            search(root, "first")
        counts.append(len(captured))
    assert counts == [12, 12]


@pytest.mark.parametrize(
    "path",
    [url("messages"), "/admin/", "/admin/crm/event/", "/admin/crm/event/add/",
     "/admin/account/2fa/", "/admin/password_change/"],
)  # fmt: skip
def test_every_page_has_the_one_search_field(root, org, path):
    shown = root.get(path).content.decode()
    assert shown.count('id="console-search"') == 1
    assert 'id="nav-filter"' not in shown
