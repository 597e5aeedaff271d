"""The embedded platform, by what every platform must do."""

import threading
import time

import pytest
from django.db import connection, transaction

from rme.crm.connectors.base import Deadline, PlatformSlow
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.connectors.records import NewAccount
from rme.crm.models import Account
from tests import factories
from tests.crm.conformance import Conformance
from tests.crm.own_tables import OwnTables


@pytest.mark.django_db
class TestEmbedded(Conformance):
    @pytest.fixture
    def platform(self) -> OwnTables:
        org = factories.organization()
        return OwnTables(org, EmbeddedConnector(org.pk))


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
    connector, started = EmbeddedConnector(org.pk), time.monotonic()
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
