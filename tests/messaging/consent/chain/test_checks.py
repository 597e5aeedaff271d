"""Verifications of the ledger: in slices, with the place of what does not fit."""

import pytest

from messaging.consent import ledger
from messaging.consent.chain import checks
from messaging.consent.tasks import verify_ledgers
from messaging.models import ConsentEntry, LedgerCheck
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded(org, monkeypatch):
    """Record five entries, of which a slice verifies two."""
    monkeypatch.setattr(ledger, "VERIFY_BATCH", 2)
    decisions = [
        ledger.ConsentDecision(name, "EMAIL", "NEWS", "OPTED_IN", "API", None) for name in "abcde"
    ]
    return ledger.record(org.pk, decisions)


def verified(org):
    check = checks.begin(org.pk, "olga")
    verify_ledgers()
    return LedgerCheck.objects.get(pk=check.pk)


def test_a_ledger_is_verified_in_slices_and_the_result_is_kept(org, recorded):
    ledger.erase(org.pk, "b")
    check = checks.begin(org.pk, "olga")
    assert checks.begin(org.pk, "another").pk == check.pk  # it runs already
    assert checks.run_slice(check.pk)
    check.refresh_from_db()
    assert (check.state, check.entries, check.total, check.percent) == ("RUNNING", 2, 5, 40)
    verify_ledgers()
    check.refresh_from_db()
    assert (check.state, check.entries, check.erased, check.holds) == ("DONE", 5, 1, True)
    assert (check.head, check.last) == (recorded[-1].digest, recorded[-1].pk)
    decision = ledger.ConsentDecision("f", "EMAIL", "NEWS", "OPTED_IN", "API", None)
    (new,) = ledger.record(org.pk, [decision])
    state = checks.state(org.pk)
    assert (state.entries, state.is_exact, state.head) == (6, True, new.digest)
    assert (state.newest, state.recorded_at) == (check, new.recorded_at)


def test_changed_entry_is_named(org, recorded):
    ConsentEntry.objects.filter(pk=recorded[3].pk).update(status="OPTED_OUT")
    check = verified(org)
    assert (check.state, check.entries, check.broken, check.holds) == (
        "DONE", 3, recorded[3].pk, False,
    )  # fmt: skip


def test_entries_missing_at_the_end_are_detected(org, recorded):
    assert verified(org).holds
    last = recorded[-1]
    ConsentEntry.objects.filter(pk=last.pk).delete()
    check = verified(org)
    assert (check.entries, check.broken, check.missing, check.holds) == (4, None, last.pk, False)


def test_a_ledger_without_entries_holds_and_concerns_no_other(org, recorded):
    other = factories.organization("other")
    check = verified(other)
    assert (check.entries, check.holds, check.percent) == (0, True, 100)
    assert checks.state(other.pk).head == ""
    assert checks.place_of(other.pk, recorded[0].pk) is None
