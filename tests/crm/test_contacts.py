"""Messages to people of a remote platform: whose connector, how often it is asked, and what
becomes of a send when it fails.
"""

from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Delivery, Message
from rme.core.cache import TtlCache
from rme.crm import contacts, platforms
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.salesforce.connector import SalesforceConnector
from rme.crm.models import Platform
from tests import factories
from tests.crm import remote
from tests.fakes.http1 import respond
from tests.fakes.odoo import OdooServer, Refused
from tests.rest import Api, error, message, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened")]


def connect(org: Any, kind: str, settings: dict[str, Any], raw: dict[str, Any]) -> None:
    Platform.objects.create(
        organization=org, kind=kind, credentials=orjson.dumps(settings).decode(), mapping=raw
    )
    platforms.forget(org.pk)


@pytest.fixture
def with_odoo(org: Any, odoo: OdooServer) -> OdooServer:
    connect(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    return odoo


def to(*contact_ids: str, **fields: Any) -> dict[str, Any]:
    return message(**fields) | {"to": [{"contactId": each} for each in contact_ids]}


@pytest.mark.promise("look-ups-10", "embedded-1")
def test_each_organization_uses_its_platform(org, odoo, salesforce):
    other, third = factories.organization("other"), factories.organization("third")
    connect(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    settings = remote.salesforce_settings(salesforce)
    connect(other, "salesforce", settings, remote.SALESFORCE_MAPPING)
    chosen = [type(contacts.connector_of(each.pk)) for each in (org, other, third)]
    assert chosen == [OdooConnector, SalesforceConnector, EmbeddedConnector]
    ada = odoo.add("res.partner", name="Ada")
    assert list(contacts.get_contacts(org.pk, [ada])) == [ada]
    assert contacts.get_contacts(other.pk, [ada]) == {}
    assert contacts.get_contacts(third.pk, [ada]) == {}


def test_a_platform_is_read_once(org, with_odoo):
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            contacts.connector_of(org.pk)
    assert len(queries) == 1


@pytest.mark.promise("embedded-1", "contacts-1")
def test_embedded_records_need_one_query(org):
    people = [str(each.pk) for each in factories.contacts(org, 3)]
    with CaptureQueriesContext(connection) as queries:
        assert set(contacts.get_contacts(org.pk, people)) == set(people)
    assert len(queries) == 1


@pytest.mark.promise("contacts-2")
def test_contacts_are_kept_for_a_minute(org, with_odoo):
    people = [with_odoo.add("res.partner", name=f"P {i}") for i in range(500)]
    assert set(contacts.get_contacts(org.pk, people)) == set(people)
    assert set(contacts.get_contacts(org.pk, people[:300])) == set(people[:300])
    assert len(with_odoo.asked) == 1
    late = with_odoo.add("res.partner", name="Late")
    assert set(contacts.get_contacts(org.pk, [*people, late])) == {*people, late}
    assert with_odoo.asked[-1][2]["domain"][0] == ["id", "in", [int(late)]]
    assert contacts.CACHE_SECONDS == 60.0


@pytest.mark.promise("contacts-3")
def test_a_message_goes_to_a_contact_of_the_platform(org, with_odoo):
    ada = with_odoo.add("res.partner", name="Ada Lovelace", email="delivered@simulator.rme.test")
    event = with_odoo.add("event.event", name="Congress", date_begin="2026-03-04 09:30:00")
    factories.template(org, name="congress", subject="{{ contact.first_name }}: {{ record.name }}")
    api = Api(org)
    body = to(ada, template={"name": "congress", "language": "en_US"})
    body["context"] = {"recordId": f"event.event,{event}", "variables": {"note": "x"}}
    answer = api.send(body)
    assert (answer.status_code, answer.json()["status"]) == (202, "ACCEPTED")
    work()
    assert api.get(answer.json()["messageId"])["status"] == "DELIVERED"
    assert Delivery.objects.get().contact_id == ada


def test_contact_missing_on_the_platform_is_not_found(org, with_odoo):
    answer = Api(org).send(to("999"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.promise("contacts-4")
@pytest.mark.parametrize(
    ("break_it", "wait"),
    [
        (lambda server: setattr(server, "refuse", [Refused(401, "x.Unauthorized")]), "5"),
        (
            lambda server: setattr(
                server, "answer", lambda c, s: respond(c, 429, b"", {"Retry-After": "30"})
            ),
            "30",
        ),
        (lambda server: setattr(server, "answer", lambda c, s: respond(c, 500, b"<html>")), "5"),
    ],
    ids=["refused", "quota", "down"],
)
def test_nothing_is_accepted_while_the_platform_fails(org, with_odoo, break_it, wait):
    ada = with_odoo.add("res.partner", name="Ada", email="a@b.example")
    break_it(with_odoo)
    answer = Api(org).send(to(ada))
    assert answer.status_code == 503
    assert answer.json() == error("UNAVAILABLE", "The organization's platform does not answer.")
    assert answer.headers["Retry-After"] == wait
    assert not Message.objects.exists()


def test_broken_mapping_fails_like_an_unavailable_platform(org):
    connect(org, "odoo", {"address": "https://odoo.example"}, {"Contact": 7})
    answer = Api(org).send(to("7"))
    assert answer.json() == error("UNAVAILABLE", "The organization's platform does not answer.")


def test_deleted_contact_is_sent_nothing(org, with_odoo):
    ada = with_odoo.add("res.partner", name="Ada", email="a@b.example")
    api = Api(org)
    answer = api.send(to(ada))
    with_odoo.rows["res.partner"].clear()
    TtlCache.clear_all()  # as the minute does
    work()
    assert api.get(answer.json()["messageId"])["status"] == "BLOCKED"


@pytest.mark.promise("contacts-4")
def test_delivery_waits_while_the_platform_is_down(org, with_odoo):
    ada = with_odoo.add("res.partner", name="Ada", email="a@b.example")
    Api(org).send(to(ada))
    with_odoo.answer = lambda c, s: respond(c, 500, b"<html>")
    TtlCache.clear_all()
    work()
    row = Delivery.objects.get()
    assert (row.status, row.waiting, row.tries) == ("ACCEPTED", "PLATFORM", 0)
