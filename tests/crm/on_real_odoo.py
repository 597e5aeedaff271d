"""The conformance suite on a real Odoo 19 (`make test-odoo` brings one up; see real_odoo.py).

Its free edition has no help desk: cases are tasks, by the preset for that. What the suite's
rows need beyond it are two fields of our own, as an administrator would add them.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from rme.crm import mapping
from rme.crm.connectors.base import (
    Connector,
    Deadline,
    MappingWrong,
    PlatformAway,
    PlatformRefused,
    UnknownParent,
)
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.records import NewCase, NewContact
from rme.crm.mapping import problems_with
from rme.crm.platforms import PlatformRecord
from rme.crm.presets import PRESETS
from rme.transport import AddressPolicy, Transport
from tests.crm.conformance import Conformance
from tests.crm.remote import ODOO_MAPPING

SETTINGS = {
    "address": os.environ.get("ODOO_URL", ""),
    "database": os.environ.get("ODOO_DATABASE", ""),
    "api_key": os.environ.get("ODOO_KEY", ""),
}
MODELS = (
    *("project.task", "event.registration", "event.track", "event.sponsor"),
    *("event.event", "res.partner"),
)
"""In the order in which rows may be deleted."""
OWN_FIELDS = {"res.partner": "x_mobile", "event.sponsor": "x_booth"}


def connector(raw: dict[str, Any], **settings: str) -> OdooConnector:
    record = PlatformRecord("real", "odoo", "US", {**SETTINGS, **settings}, mapping.parse(raw))
    return OdooConnector("real", platform=record, transport=Transport(AddressPolicy(["127.0.0.1"])))


PRESET = PRESETS["odoo-community"].mapping


def call(model: str, method: str, **given: Any) -> Any:
    real = connector({kind: PRESET[kind] for kind in ("Account", "Contact")})
    real.caller.deadline = Deadline.after(30)
    return real._call(model, method, given)


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    """Keep cases in one project, and make what the suite needs."""
    for model, name in OWN_FIELDS.items():
        if name not in call(model, "fields_get", attributes=["type"]):
            (model_id,) = call("ir.model", "search", domain=[["model", "=", model]])
            row = {"name": name, "model_id": model_id, "ttype": "char", "state": "manual"}
            call("ir.model.fields", "create", vals_list=[row])
    project = call("project.project", "search", domain=[["name", "=", "Support"]])
    project = project or call("project.project", "create", vals_list=[{"name": "Support"}])
    return {**PRESET["Case"], "filter": [["project_id", "=", project[0]]]}


@dataclass
class RealRows:
    connector: Connector
    project: int

    def add(self, model: str, **fields: Any) -> str:
        return str(call(model, "create", vals_list=[fields])[0])

    def account(self, *, name: str, phone: str = "", website: str = "") -> str:
        return self.add("res.partner", name=name, phone=phone, website=website, is_company=True)

    def contact(
        self,
        *,
        last_name: str,
        first_name: str = "",
        email: str = "",
        phone: str = "",
        mobile: str = "",
        account_id: str = "",
    ) -> str:
        own = {"email": email, "phone": phone, "x_mobile": mobile}
        own["parent_id"] = int(account_id) if account_id else False
        return self.add("res.partner", name=f"{first_name} {last_name}".strip(), **own)

    def case(self, *, subject: str, contact_id: str, closed: bool = False) -> str:
        own = {"project_id": self.project, "partner_id": int(contact_id)}
        state = {"state": "1_done"} if closed else {}
        return self.add("project.task", name=subject, **own, **state)

    def event(self, *, name: str, starts_at: datetime) -> str:
        at = starts_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return self.add("event.event", name=name, date_begin=at, date_end=at)

    def registration(
        self, *, event_id: str, name: str, email: str, contact_id: str = "", cancelled: bool = False
    ) -> str:
        own = {"event_id": int(event_id), "partner_id": int(contact_id) if contact_id else False}
        state = "cancel" if cancelled else "open"
        return self.add("event.registration", name=name, email=email, state=state, **own)

    def speaker(self, *, event_id: str, contact_id: str, session_title: str) -> str:
        own = {"event_id": int(event_id), "partner_id": int(contact_id)}
        return self.add("event.track", name=session_title, **own)

    def exhibitor(self, *, event_id: str, contact_id: str, booth: str) -> str:
        kind = call("event.sponsor.type", "search", domain=[], limit=1)
        own = {"event_id": int(event_id), "partner_id": int(contact_id)}
        return self.add("event.sponsor", x_booth=booth, sponsor_type_id=kind[0], **own)


@pytest.fixture
def clean() -> Iterator[None]:
    """Delete what a test has made."""
    newest = {
        model: max(call(model, "search", domain=[], order="id desc", limit=1), default=0)
        for model in MODELS
    }
    yield
    for model in MODELS:
        made = call(model, "search", domain=[["id", ">", newest[model]]])
        call(model, "unlink", ids=made)


@pytest.fixture
def rows(cases: dict[str, Any], clean: None) -> RealRows:
    return RealRows(connector({**ODOO_MAPPING, "Case": cases}), cases["filter"][0][2])


class TestRealOdoo(Conformance):
    @pytest.fixture
    def platform(self, rows: RealRows) -> RealRows:
        return rows


@pytest.mark.promise("odoo-1")
def test_preset_matches_the_objects_of_odoo():
    raw = PRESET
    objects = [each["object"] for each in raw.values()]
    described = connector(raw).describe([*objects, "no.model"], deadline=Deadline.after(30))
    assert described["no.model"] is None
    assert problems_with(mapping.parse(raw), described) == []


@pytest.mark.promise("odoo-1")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"api_key": "wrong"}, PlatformRefused), ({"database": "other"}, PlatformAway)],
    ids=["key", "database"],
)
def test_wrong_settings_raise_their_error(settings, expected):
    with pytest.raises(expected):
        connector(ODOO_MAPPING, **settings).find_accounts(
            "Acme", limit=1, deadline=Deadline.after(10)
        )


@pytest.mark.promise("odoo-1")
def test_wrong_names_are_the_mappings_fault(rows):
    contact = {"object": "res.partner", "fields": {"email": ["no_such_field"]}}
    wrong = connector({**ODOO_MAPPING, "Contact": contact})
    with pytest.raises(MappingWrong):
        wrong.find_contacts_by_email("a@b.example", limit=1, deadline=Deadline.after(10))
    missing = connector(ODOO_MAPPING)  # whose cases are tickets
    with pytest.raises(MappingWrong):
        missing.find_cases("a@b.example", limit=1, deadline=Deadline.after(10))


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewContact("L", account_id="2000000000"), "account_id"),
        (NewCase("S", "I", contact_id="2000000000"), "contact_id"),
    ],
    ids=["contact", "case"],
)
def test_unknown_parent_is_reported_with_its_field(rows, new, field):
    with pytest.raises(UnknownParent) as raised:
        rows.connector.create(new, deadline=Deadline.after(10))
    assert raised.value.field == field


@pytest.mark.promise("odoo-5")
def test_a_task_is_a_case_in_our_words(rows):
    ada = rows.contact(last_name="L", email="ada@example.org")
    made = rows.connector.create(NewCase("S", "I", ada), deadline=Deadline.after(10))
    closed = rows.case(subject="Old", contact_id=ada, closed=True)
    found = rows.connector.find_cases("ada@example.org", limit=5, deadline=Deadline.after(10))
    assert [
        (each.id, each.number, each.is_closed, each.priority, each.account_id) for each in found
    ] == [(closed, closed, True, "Low", ""), (made, made, False, "Low", "")]
    assert all(each.status for each in found)


@pytest.mark.promise("odoo-5")
def test_task_without_a_project_is_a_case(clean):
    ada = RealRows(connector(ODOO_MAPPING), 0).contact(last_name="L", email="ada@example.org")
    free = connector({**ODOO_MAPPING, "Case": PRESET["Case"]})
    made = free.create(NewCase("S", "I", ada), deadline=Deadline.after(10))
    (found,) = free.find_cases("ada@example.org", limit=5, deadline=Deadline.after(10))
    assert (found.id, found.subject, found.issue, found.status) == (made, "S", "I", "In Progress")


def test_an_address_with_letters_beyond_ascii_is_found(rows):
    ada = rows.contact(last_name="L", email="Ada@Exämple.org")
    found = rows.connector.find_contacts_by_email(
        "ada@xn--exmple-cua.org", limit=5, deadline=Deadline.after(10)
    )
    assert [each.id for each in found] == [ada]


@pytest.mark.promise("odoo-2")
def test_a_number_without_a_country_is_found(rows):
    ada = rows.contact(last_name="L", phone="(212) 736-5000")
    found = rows.connector.find_contacts_by_phone(
        "+12127365000", limit=5, deadline=Deadline.after(10)
    )
    assert [(each.id, each.mobile) for each in found] == [(ada, "+12127365000")]


def test_company_booth_belongs_to_its_people(rows):
    acme = rows.account(name="Acme")
    ada = rows.contact(last_name="L", account_id=acme)
    event = rows.event(name="Congress", starts_at=datetime(2026, 3, 4, tzinfo=UTC))
    booth = rows.exhibitor(event_id=event, contact_id=acme, booth="B1")
    (found,) = rows.connector.find_exhibitors(ada, limit=5, deadline=Deadline.after(10))
    assert (found.id, found.account_id, found.account_name, found.contact_id) == (
        booth,
        acme,
        "Acme",
        ada,
    )
