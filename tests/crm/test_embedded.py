"""The embedded platform, by what every platform must do."""

import threading
import time
from dataclasses import dataclass
from datetime import datetime

import pytest
from django.db import connection, transaction

from rme.crm.connectors.base import Connector, Deadline, NewAccount, PlatformSlow
from rme.crm.connectors.embedded import Embedded
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import Organization
from tests import factories
from tests.crm.conformance import Conformance


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


@pytest.mark.django_db
class TestEmbedded(Conformance):
    @pytest.fixture
    def platform(self) -> OwnTables:
        org = factories.organization()
        return OwnTables(org, Embedded(org.pk))


@pytest.mark.django_db(transaction=True)
def test_a_locked_table_costs_no_more_than_the_deadline():
    org = factories.organization()
    locked, done = threading.Event(), threading.Event()

    def lock() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE crm_contact, crm_account IN ACCESS EXCLUSIVE MODE")
            locked.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=lock)
    other.start()
    locked.wait(10)
    connector, started = Embedded(org.pk), time.monotonic()
    try:
        with pytest.raises(PlatformSlow):
            connector.find_contacts_by_email("a@b.example", limit=1, deadline=Deadline.after(0.3))
        with pytest.raises(PlatformSlow):
            connector.create(NewAccount("A"), deadline=Deadline.after(0.3))
        took = time.monotonic() - started
    finally:
        done.set()
        other.join()
    assert took < 2
    assert not Account.objects.exists()
