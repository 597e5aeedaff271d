"""Rows in our own tables, as the conformance suite makes them."""

from dataclasses import dataclass
from datetime import datetime

from rme.crm.connectors.base import Connector
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import Organization


@dataclass
class OwnTables:
    org: Organization
    connector: Connector

    def account(self, **fields: str) -> str:
        return str(Account.objects.create(organization=self.org, **fields).pk)

    def contact(self, *, account_id: str = "", **fields: str) -> str:
        own = {"organization": self.org, "account_id": account_id or None}
        return str(Contact.objects.create(**own, **fields).pk)

    def case(self, *, subject: str, contact_id: str, closed: bool = False) -> str:
        row = Case.objects.create(
            organization=self.org,
            number=str(Case.objects.count()),
            subject=subject,
            issue="I",
            contact_id=contact_id,
            status="Closed" if closed else "New",
        )
        return str(row.pk)

    def event(self, *, name: str, starts_at: datetime) -> str:
        row = Event.objects.create(organization=self.org, name=name, starts_at=starts_at)
        return str(row.pk)

    def registration(
        self, *, event_id: str, name: str, email: str, contact_id: str = "", cancelled: bool = False
    ) -> str:
        row = EventRegistration.objects.create(
            organization=self.org,
            event_id=event_id,
            name=name,
            email=email,
            contact_id=contact_id or None,
            status="Cancelled" if cancelled else "Registered",
        )
        return str(row.pk)

    def speaker(self, **fields: str) -> str:
        return str(Speaker.objects.create(organization=self.org, **fields).pk)

    def exhibitor(self, **fields: str) -> str:
        return str(Exhibitor.objects.create(organization=self.org, **fields).pk)
