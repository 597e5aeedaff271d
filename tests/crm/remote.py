"""Remote platforms for tests: a stub with rows, and a connector that reaches it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from rme.crm import mapping
from rme.crm.connectors.base import Connector
from rme.crm.connectors.odoo.connector import OdooConnector
from rme.crm.connectors.salesforce.connector import SalesforceConnector
from rme.crm.platforms import PlatformRecord
from rme.crm.presets import PRESETS
from rme.transport import AddressPolicy, Transport
from tests.fakes.http1 import Seen
from tests.fakes.odoo import DATABASE, KEY, OdooServer
from tests.fakes.salesforce import SalesforceServer
from tests.fakes.tls import ca_pem


def _salesforce_mapping() -> dict[str, Any]:
    """Return the preset, with the stub's own objects for events."""
    event = {
        "event_id": ["Event__c"],
        "event_name": ["Event__r.Name"],
        "event_start": ["Event__r.Start__c"],
        "contact_id": ["Contact__c"],
    }
    preset = PRESETS["salesforce"].mapping
    return {
        **{kind: preset[kind] for kind in ("Account", "Contact", "Case")},
        "Event": {"object": "Event__c", "fields": {"name": ["Name"], "starts_at": ["Start__c"]}},
        "EventRegistration": {
            "object": "Attendee__c",
            "fields": {
                **event,
                "name": ["Name"],
                "email": ["Email__c"],
                "find_email": ["Email__c", "Contact__r.Email"],
                "contact_email": ["Contact__r.Email"],
                "status": ["Status__c"],
                "is_registered": ["Status__c"],
            },
            "values": {"is_registered": {"Cancelled": False, "*": True}},
        },
        "Speaker": {
            "object": "Speaker__c",
            "fields": {
                **event,
                "name": ["Contact__r.LastName"],
                "session_title": ["Title__c"],
                "room": ["Room__c"],
            },
        },
        "Exhibitor": {
            "object": "Exhibitor__c",
            "fields": {**event, "account_id": ["Account__c"], "booth": ["Booth__c"]},
        },
    }


def _odoo_mapping() -> dict[str, Any]:
    """Return the preset, with the stub's two fields that Odoo itself has not."""
    preset = PRESETS["odoo"].mapping
    contact, exhibitor = preset["Contact"], preset["Exhibitor"]
    mobile = {"mobile": ["x_mobile", "phone_sanitized", "phone"], "phone": ["phone", "x_mobile"]}
    mobile["phones"] = ["phone_sanitized", "phone", "x_mobile"]
    return {
        **preset,
        "Contact": {**contact, "fields": {**contact["fields"], **mobile}},
        "Exhibitor": {**exhibitor, "fields": {**exhibitor["fields"], "booth": ["x_booth"]}},
    }


SALESFORCE_MAPPING = _salesforce_mapping()
ODOO_MAPPING = _odoo_mapping()


def transport(*hosts: str) -> Transport:
    return Transport(AddressPolicy(hosts or ("127.0.0.1",)))


def salesforce(server: SalesforceServer, **settings: Any) -> SalesforceConnector:
    record = PlatformRecord(
        "acme", "salesforce", "US", salesforce_settings(server, **settings), _SALESFORCE
    )
    return SalesforceConnector("acme", platform=record, transport=transport())


def salesforce_settings(server: SalesforceServer, **settings: Any) -> dict[str, Any]:
    own = {"address": server.url, "client_id": "app", "client_secret": "secret"}
    return {**own, "ca_pem": ca_pem(), **settings}


def odoo(server: OdooServer, **settings: Any) -> OdooConnector:
    record = PlatformRecord("acme", "odoo", "US", odoo_settings(server, **settings), _ODOO)
    return OdooConnector("acme", platform=record, transport=transport())


def odoo_settings(server: OdooServer, **settings: Any) -> dict[str, Any]:
    own = {"address": server.url, "database": DATABASE, "api_key": KEY, "ca_pem": ca_pem()}
    return {**own, **settings}


_SALESFORCE = mapping.parse(SALESFORCE_MAPPING)
_ODOO = mapping.parse(ODOO_MAPPING)


@dataclass
class SalesforceRows:
    """Rows in the stub, as the conformance suite makes them."""

    server: SalesforceServer
    connector: Connector

    def account(self, *, name: str, phone: str = "", website: str = "") -> str:
        return self.server.add("Account", Name=name, Phone=phone or None, Website=website or None)

    def contact(self, *, last_name: str, account_id: str = "", **given: str) -> str:
        names = {"first_name": "FirstName", "email": "Email"}
        names |= {"phone": "Phone", "mobile": "MobilePhone"}
        fields = {names[name]: value for name, value in given.items()}
        return self.server.add(
            "Contact", LastName=last_name, AccountId=account_id or None, **fields
        )

    def case(self, *, subject: str, contact_id: str, closed: bool = False) -> str:
        return self.server.add("Case", Subject=subject, ContactId=contact_id, IsClosed=closed)

    def event(self, *, name: str, starts_at: datetime) -> str:
        at = starts_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
        return self.server.add("Event__c", Name=name, Start__c=at)

    def registration(
        self, *, event_id: str, name: str, email: str, contact_id: str = "", cancelled: bool = False
    ) -> str:
        status = "Cancelled" if cancelled else "Registered"
        own = {"Event__c": event_id, "Contact__c": contact_id or None}
        return self.server.add("Attendee__c", Name=name, Email__c=email, Status__c=status, **own)

    def speaker(self, *, event_id: str, contact_id: str, session_title: str) -> str:
        own = {"Event__c": event_id, "Contact__c": contact_id}
        return self.server.add("Speaker__c", Title__c=session_title, **own)

    def exhibitor(self, *, event_id: str, contact_id: str, booth: str) -> str:
        own = {"Event__c": event_id, "Contact__c": contact_id}
        return self.server.add("Exhibitor__c", Booth__c=booth, **own)


@dataclass
class OdooRows:
    """Rows in the stub, as the conformance suite makes them."""

    server: OdooServer
    connector: Connector

    def account(self, *, name: str, phone: str = "", website: str = "") -> str:
        own = {"phone": phone or False, "website": website or False, "is_company": True}
        return self.server.add("res.partner", name=name, **own)

    def contact(
        self, *, last_name: str, first_name: str = "", account_id: str = "", **given: str
    ) -> str:
        fields: dict[str, Any] = {"x_mobile" if n == "mobile" else n: v for n, v in given.items()}
        if account_id:
            fields["parent_id"] = int(account_id)
        return self.server.add("res.partner", name=f"{first_name} {last_name}".strip(), **fields)

    def case(self, *, subject: str, contact_id: str, closed: bool = False) -> str:
        stage = (
            self.server.stage("Solved", fold=True)
            if closed
            else self.server.stage("New", fold=False)
        )
        own = {"partner_id": int(contact_id), "stage_id": int(stage)}
        return self.server.add("helpdesk.ticket", name=subject, **own)

    def event(self, *, name: str, starts_at: datetime) -> str:
        at = starts_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        return self.server.add("event.event", name=name, date_begin=at)

    def registration(
        self, *, event_id: str, name: str, email: str, contact_id: str = "", cancelled: bool = False
    ) -> str:
        state = "cancel" if cancelled else "open"
        own = {"event_id": int(event_id), "partner_id": int(contact_id) if contact_id else False}
        return self.server.add("event.registration", name=name, email=email, state=state, **own)

    def speaker(self, *, event_id: str, contact_id: str, session_title: str) -> str:
        own = {"event_id": int(event_id), "partner_id": int(contact_id)}
        return self.server.add("event.track", name=session_title, **own)

    def exhibitor(self, *, event_id: str, contact_id: str, booth: str) -> str:
        own = {"event_id": int(event_id), "partner_id": int(contact_id)}
        return self.server.add("event.sponsor", x_booth=booth, **own)


def open_transactions(odoo: OdooServer) -> list[list[str]]:
    """Return a list that gets, each time the platform is asked, the open transaction of the asker.

    The asker is this thread, which has one connection for the whole test.
    """
    states: list[list[str]] = []
    whole = odoo.answer
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((asker,),) = cursor.fetchall()

    def answer(wire: Any, seen: Seen) -> bool | None:
        with connection.cursor() as cursor:  # this thread's own
            cursor.execute(
                "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE pid = %s", [asker]
            )
            ((state, is_free),) = cursor.fetchall()
            states.append([] if is_free else [state])
        connection.close()
        return whole(wire, seen)

    odoo.answer = answer  # type: ignore[method-assign]
    return states
