"""Odoo's errors as it was seen to write them, and what a broken server is."""

from collections.abc import Callable
from typing import Any

import pytest

from rme.crm import mapping
from rme.crm.connectors.base import (
    Deadline,
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.records import NewCase, NewContact
from rme.crm.platforms import PlatformRecord
from rme.crm.presets import PRESETS
from rme.transport import AddressPolicy, Transport
from tests.crm import remote
from tests.crm.breaking import BREAKS, seconds_for
from tests.crm.connectors.errors_scene import find, make
from tests.fakes.http1 import respond
from tests.fakes.odoo import OdooServer, Refused
from tests.stopwatch import Stopwatch

READ = {
    "no key": (Refused(401, "werkzeug.exceptions.Unauthorized", "Invalid apikey"), PlatformRefused),
    "no right": (Refused(403, "odoo.exceptions.AccessError"), PlatformRefused),
    "no model": (
        Refused(404, "werkzeug.exceptions.NotFound", "the model 'x' does not exist"),
        MappingWrong,
    ),
    "no field": (Refused(500, "builtins.ValueError", "Invalid field 'x' on 'y'"), MappingWrong),
    "a fault": (Refused(500, "builtins.KeyError", "'x'"), PlatformAway),
    "too many": (Refused(429, "werkzeug.exceptions.TooManyRequests"), PlatformLimit),
}


@pytest.mark.promise("bot-failures-19", "odoo-4")
@pytest.mark.parametrize("case", READ)
def test_an_error_on_reading_is_reported_without_the_platforms_text(server, case):
    refusal, expected = READ[case]
    server.refuse = [refusal]
    with pytest.raises(expected) as raised:
        find(remote.odoo(server))
    assert "Traceback" not in f"{raised.value!r}"
    assert "Invalid" not in f"{raised.value!r}"


WRITE = {
    "unique": (Refused(500, "psycopg2.errors.UniqueViolation"), Duplicate),
    "needed": (Refused(422, "odoo.exceptions.ValidationError", "a name"), MappingWrong),
    "a fault": (Refused(500, "builtins.KeyError", "'x'"), PlatformAway),
    "no key": (Refused(401, "werkzeug.exceptions.Unauthorized"), PlatformRefused),
}


@pytest.mark.promise("odoo-4")
@pytest.mark.parametrize("case", WRITE)
def test_an_error_on_creating_is_reported(server, case):
    refusal, expected = WRITE[case]
    server.refuse = [refusal]
    with pytest.raises(expected):
        make(remote.odoo(server))
    assert server.rows["res.partner"] == []


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewContact("L", account_id="999"), "account_id"),
        (NewCase("S", "I", contact_id="999"), "contact_id"),
        (NewCase("S", "I", account_id="999"), "account_id"),
        (NewContact("L", account_id="Robert'); --"), "account_id"),
    ],
    ids=["contact", "case", "case of an account", "no id"],
)
def test_unknown_parent_is_reported_with_its_field(server, new, field):
    with pytest.raises(UnknownParent) as raised:
        remote.odoo(server).create(new, deadline=Deadline.after(4))
    assert raised.value.field == field


def test_parent_rejected_by_a_database_constraint_is_named(server):
    message = (
        "The operation cannot be completed: Another model is using the record you are trying to "
        "delete.\n\nThe troublemaker is: 'Ticket' (helpdesk.ticket)\nThanks to the following "
        "constraint: 'Customer' (partner_id)\nHow about archiving the record instead?"
    )
    connector = remote.odoo(server)
    connector.find_cases("a@b.example", limit=1, deadline=Deadline.after(4))
    connector._types("helpdesk.ticket")
    server.refuse = [Refused(422, "odoo.exceptions.ValidationError", message)]
    with pytest.raises(UnknownParent) as raised:
        connector.create(NewCase("S", "I", contact_id="7"), deadline=Deadline.after(4))
    assert raised.value.field == "contact_id"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"api_key": "wrong"}, PlatformRefused),
        ({"api_key": "w\nrong"}, PlatformRefused),
        ({"database": "other"}, PlatformAway),
        ({"address": "https://127.0.0.1:1"}, PlatformAway),
        ({"address": "ftp://127.0.0.1"}, PlatformAway),
        ({"address": "http://"}, PlatformAway),
        ({"ca_pem": ""}, PlatformAway),
    ],
    ids=["key", "bad key", "database", "nobody there", "scheme", "no host", "strange certificate"],
)
def test_wrong_settings_raise_their_error(server, settings, expected):
    with pytest.raises(expected):
        find(remote.odoo(server, **settings))


@pytest.mark.promise("mapping-7")
def test_non_public_address_is_not_called(server):
    record = PlatformRecord("acme", "odoo", settings=remote.odoo_settings(server))
    record = PlatformRecord(
        "acme", "odoo", settings=record.settings, mappings=remote.odoo(server).platform.mappings
    )
    connector = OdooConnector("acme", platform=record, transport=Transport(AddressPolicy()))
    with pytest.raises(PlatformAway):
        find(connector)
    assert server.connections == 0


def test_rate_limit_error_has_its_retry_after(server):
    server.answer = lambda connection, seen: respond(connection, 429, b"{}", {"Retry-After": "17"})
    with pytest.raises(PlatformLimit) as raised:
        find(remote.odoo(server))
    assert raised.value.retry_after == 17


@pytest.mark.promise("odoo-6")
@pytest.mark.parametrize("name", BREAKS)
def test_broken_server_raises_its_error_in_time(server, name):
    answer, reading, making = BREAKS[name]
    server.answer = answer
    with Stopwatch() as watch:
        with pytest.raises(reading):
            find(remote.odoo(server), seconds_for(name))
        with pytest.raises(making):
            make(remote.odoo(server), seconds_for(name))
    assert watch.seconds < 7  # each waits for ten where nobody ends it


def test_read_is_retried_once_and_create_is_not(server):
    good: Callable[..., Any] = server.answer
    tries: list[str] = []

    def once_broken(connection, seen):
        tries.append(seen.path)
        if len(tries) == 1:
            return respond(connection, 503, b"<html>restarting</html>")
        return good(connection, seen)

    server.answer = once_broken
    assert find(remote.odoo(server)) == []
    assert len(tries) == 2
    tries.clear()
    with pytest.raises(PlatformSlow):
        make(remote.odoo(server))
    assert len(tries) == 1
    assert server.rows["res.partner"] == []


@pytest.mark.promise("contacts-1")
def test_five_hundred_contacts_are_one_call(server):
    made = [server.add("res.partner", name=f"P {i}", phone="+12127365000") for i in range(500)]
    found = remote.odoo(server).get_contacts(made, deadline=Deadline.after(4))
    assert list(found) == made[::-1]
    assert {each.mobile for each in found.values()} == {"+12127365000"}
    assert len(server.asked) == 1


def test_misspelled_id_matches_no_contact(server):
    ada = server.add("res.partner", name="Ada")
    given = [f"0{ada}", f" {ada}", f"res.partner,{ada}", f"{ada}.0", "-1", "9" * 10, "٣"]
    assert remote.odoo(server).get_contacts(given) == {}


@pytest.mark.promise("contacts-3")
def test_a_record_is_reached_by_its_model_too(server):
    event = server.add("event.event", name="Congress", date_begin="2026-03-04 09:30:00")
    found = remote.odoo(server).get_records([f"event.event,{event}", f"helpdesk.ticket,{event}"])
    assert found == {
        f"event.event,{event}": {
            "type": "Event",
            "id": event,
            "created_at": found[f"event.event,{event}"]["created_at"],
            "name": "Congress",
            "starts_at": "2026-03-04T09:30:00+00:00",
            "ends_at": None,
        }
    }


@pytest.mark.promise("look-ups-2", "odoo-2")
def test_number_stored_unparsed_by_odoo_is_found(server):
    ada = server.add("res.partner", name="Ada", phone="(212) 736-5000")
    server.add("res.partner", name="Eve", phone="(212) 736-5001")
    found = remote.odoo(server).find_contacts_by_phone(
        "+12127365000", limit=5, deadline=Deadline.after(4)
    )
    assert [(each.id, each.phone, each.mobile) for each in found] == [
        (ada, "+12127365000", "+12127365000")
    ]


def test_text_is_stored_as_html_and_read_back(server):
    connector = remote.odoo(server)
    ada = server.add("res.partner", name="Ada", email="a@b.example")
    issue = "It <b>fails</b> & stops\nalways"
    made = connector.create(NewCase("S", issue, contact_id=ada), deadline=Deadline.after(4))
    (row,) = server.rows["helpdesk.ticket"]
    assert row["description"] == "It &lt;b&gt;fails&lt;/b&gt; &amp; stops<br/>always"
    (found,) = connector.find_cases("a@b.example", limit=5, deadline=Deadline.after(4))
    assert (found.id, found.issue) == (made, issue)


def without_help_desk(server: OdooServer) -> OdooConnector:
    raw = mapping.parse(PRESETS["odoo-community"].mapping)
    record = PlatformRecord("acme", "odoo", "US", remote.odoo_settings(server), raw)
    return OdooConnector("acme", platform=record, transport=remote.transport())


@pytest.mark.promise("odoo-5")
def test_cases_are_tasks_without_a_help_desk(server):
    connector = without_help_desk(server)
    acme = server.add("res.partner", name="Acme", is_company=True)
    ada = server.add("res.partner", name="Ada", email="a@b.example", parent_id=int(acme))
    issue = "It <b>fails</b>\nalways"
    made = connector.create(NewCase("S", issue, contact_id=ada), deadline=Deadline.after(4))
    stage = int(server.stage("Solved", fold=True))
    task = {"name": "Old", "partner_id": int(ada), "state": "1_done", "stage_id": stage}
    closed = server.add("project.task", **task)
    assert server.rows["helpdesk.ticket"] == []
    found = connector.find_cases("a@b.example", limit=5, deadline=Deadline.after(4))
    assert [
        (each.id, each.number, each.subject, each.issue, each.status, each.is_closed)
        for each in found
    ] == [
        (closed, closed, "Old", "", "Solved", True),
        (made, made, "S", issue, "In Progress", False),
    ]
    assert {(each.contact_id, each.account_id) for each in found} == {(ada, acme)}


@pytest.mark.promise("look-ups-11")
def test_a_person_without_a_company_has_no_account(server):
    connector = remote.odoo(server)
    ada = server.add("res.partner", name="Ada", email="a@b.example")
    event = server.add("event.event", name="Congress", date_begin="2026-03-04 09:30:00")
    server.add("event.sponsor", event_id=int(event), partner_id=int(ada))
    connector.create(NewCase("S", "I", contact_id=ada), deadline=Deadline.after(4))
    (case,) = connector.find_cases("a@b.example", limit=5, deadline=Deadline.after(4))
    (booth,) = connector.find_exhibitors(ada, limit=5, deadline=Deadline.after(4))
    assert (case.contact_id, case.account_id) == (ada, "")
    assert (booth.contact_id, booth.account_id, booth.account_name) == (ada, "", "")


@pytest.mark.promise("look-ups-1", "odoo-2")
def test_an_address_with_letters_beyond_ascii_is_found(server):
    ada = server.add("res.partner", name="Ada", email="Ada@Exämple.org")
    found = remote.odoo(server).find_contacts_by_email(
        "ada@xn--exmple-cua.org", limit=5, deadline=Deadline.after(4)
    )
    assert [each.id for each in found] == [ada]


@pytest.mark.promise("look-ups-6")
def test_company_booth_belongs_to_its_people(server):
    acme = server.add("res.partner", name="Acme", is_company=True)
    ada = server.add("res.partner", name="Ada", parent_id=int(acme))
    eve = server.add("res.partner", name="Eve")
    event = server.add("event.event", name="Congress", date_begin="2026-03-04 09:30:00")
    server.add("event.sponsor", event_id=int(event), partner_id=int(acme))
    connector = remote.odoo(server)
    (found,) = connector.find_exhibitors(ada, limit=5, deadline=Deadline.after(4))
    assert (found.account_id, found.account_name, found.contact_id) == (acme, "Acme", ada)
    assert connector.find_exhibitors(eve, limit=5, deadline=Deadline.after(4)) == []
