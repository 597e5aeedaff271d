"""The page of the chain: its state, a verification, the place of what is broken, and files."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.consent.tasks import verify_ledgers
from messaging.models import ConsentEntry, LedgerCheck
from rme.core.cache import TtlCache
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded(org):
    ada = factories.contact(org)
    decision = ledger.ConsentDecision(str(ada.pk), "SMS", "NEWS", "OPTED_IN", "API", None)
    return ledger.record(org.pk, [decision] * 3)


def shown(client):
    found = client.get(url("ledger"))
    assert found.status_code == 200
    return found.content.decode()


def verify(client):
    assert client.post(url("ledger")).status_code == 302
    verify_ledgers()
    return shown(client)


def test_verification_is_started_shown_and_stored(root, org, recorded):
    assert "The chain has not been verified yet." in shown(root)
    assert root.post(url("ledger")).status_code == 302
    assert root.post(url("ledger")).status_code == 302  # it runs already
    running = shown(root)
    assert "data-running" in running
    assert "Verify now" not in running
    verify_ledgers()
    done = shown(root)
    assert "The chain holds" in done
    assert recorded[-1].digest in done
    assert LedgerCheck.objects.count() == 1
    assert [each[1] for each in audited.summaries()] == ["VERIFIED", "VERIFIED"]


def test_broken_chain_names_the_entry(root, org, recorded):
    ConsentEntry.objects.filter(pk=recorded[1].pk).update(status="OPTED_OUT")
    text = verify(root)
    assert "The chain is broken: entry number 2 does not fit." in text
    assert "Ada Lovelace" in text
    assert "Opted out of news SMS" in text
    assert str(recorded[1].pk) in text
    ConsentEntry.objects.filter(pk=recorded[1].pk).delete()
    assert "entry number 2 does not fit" in verify(root)


def test_missing_entries_at_the_end_are_reported(root, org, recorded):
    assert "The chain holds" in verify(root)
    ConsentEntry.objects.filter(pk=recorded[2].pk).delete()
    text = verify(root)
    assert "Entries are missing at the end" in text
    assert str(recorded[2].pk) in text


def test_ledger_export_is_a_file_and_audited(root, org, recorded):
    done = root.post(url("ledger_export"), {"format": "csv"})
    assert done["Content-Disposition"] == 'attachment; filename="consent-acme.csv"'
    assert len(b"".join(done).splitlines()) == 4
    done = root.post(url("ledger_export"), {"format": "ndjson"})
    assert "no-store" in done["Cache-Control"]
    lines = [json.loads(line) for line in b"".join(done).splitlines()]
    assert [line["digest"] for line in lines] == [entry.digest for entry in recorded]
    assert audited.summaries() == [
        ("root", "EXPORTED", "consent ledger as CSV"),
        ("root", "EXPORTED", "consent ledger as NDJSON"),
    ]


def test_viewer_sees_the_page_but_cannot_verify(org, recorded):
    viewer = person("v", org, Membership.Role.VIEWER)
    assert "Verify now" not in shown(viewer)
    assert viewer.post(url("ledger")).status_code == 403


def test_statements_are_few(root, org, recorded):
    verify(root)
    TtlCache.clear_all()
    with CaptureQueriesContext(connection) as captured:
        shown(root)
    assert len(captured) == 9
