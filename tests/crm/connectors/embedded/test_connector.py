"""The embedded platform, by what every platform must do."""

import threading

import pytest
from django.db import connection, transaction

from rme.crm.connectors.base import Deadline, PlatformSlow
from rme.crm.connectors.embedded.connector import EmbeddedConnector, contacts_of_many
from rme.crm.connectors.records import NewAccount
from rme.crm.models import Account
from tests import factories
from tests.crm.conformance import Conformance
from tests.crm.own_tables import OwnTables
from tests.stopwatch import Stopwatch


@pytest.mark.django_db
class TestEmbedded(Conformance):
    @pytest.fixture
    def platform(self) -> OwnTables:
        org = factories.organization()
        return OwnTables(org, EmbeddedConnector(org.pk))


_FETCHED = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'crm_contact'
"""


@pytest.mark.django_db
@pytest.mark.parametrize("analyzed", [False, True])
def test_contacts_of_many_organizations_are_read_one_by_one(analyzed):
    """However many contacts an organization has, and whatever the statistics say."""
    wanted = {}
    for each in ("a", "b"):
        rows = factories.contacts(factories.organization(each), 1000)
        wanted[each] = [str(row.pk) for row in rows[:20]]
    with connection.cursor() as cursor:
        if analyzed:
            cursor.execute("ANALYZE crm_contact")
        cursor.execute(_FETCHED)
        (before,) = cursor.fetchone()
        found = contacts_of_many(wanted)
        cursor.execute(_FETCHED)
        (after,) = cursor.fetchone()
    assert {each: list(rows) for each, rows in found.items()} == wanted
    assert after - before == 40


@pytest.mark.promise("bot-calls-7")
@pytest.mark.django_db(transaction=True)
def test_locked_table_delays_no_longer_than_the_deadline():
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
    connector = EmbeddedConnector(org.pk)
    try:
        with Stopwatch() as watch:
            with pytest.raises(PlatformSlow):
                connector.find_contacts_by_email(
                    "a@b.example", limit=1, deadline=Deadline.after(0.3)
                )
            with pytest.raises(PlatformSlow):
                connector.create(NewAccount("A"), deadline=Deadline.after(0.3))
    finally:
        done.set()
        other.join()
    assert watch.seconds < 6  # of the ten for which the table is locked
    assert not Account.objects.exists()
