"""The chain of the ledger: it detects changes, and stays valid when a person is erased."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from messaging.consent import ledger
from messaging.models import ConsentEntry
from messaging.store.gates import current_consent
from tests import factories

pytestmark = pytest.mark.django_db
T = datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)


def decision(contact_id="ada", status="OPTED_IN", **fields):
    given = {"occurred_at": T, "evidence": {"form": "footer", "é": "1"}, **fields}
    return ledger.ConsentDecision(contact_id, "EMAIL", "MARKETING", status, "API", **given)


@pytest.fixture
def recorded(org):
    ledger.record(org.pk, [decision(), decision("bob"), decision(status="OPTED_OUT")])
    return ConsentEntry.objects.filter(organization=org).order_by("id")


def run(*arguments):
    output = StringIO()
    call_command("verify_consent", *arguments, stdout=output)
    return output.getvalue()


def test_an_untouched_chain_holds(org, recorded):
    head = recorded.last().digest
    assert ledger.verify(org.pk) == ledger.Verification(3, 0, head, None)
    assert run() == f"acme: 3 entries hold, 0 of them erased; head {head}\n"


def test_an_empty_chain_holds(org):
    assert ledger.verify(org.pk) == ledger.Verification(0, 0, "", None)
    assert run("--org", "acme") == "acme: 0 entries hold, 0 of them erased; head -\n"


@pytest.mark.promise("consent-6")
@pytest.mark.parametrize(
    "change",
    [
        {"status": "OPTED_OUT"},
        {"contact_id": "eve"},
        {"channel": "ALL"},
        {"category": "ALL"},
        {"source": "ADMIN"},
        {"evidence": {}},
        {"evidence": [1e40]},
        {"evidence": "x"},
        {"occurred_at": T + timedelta(microseconds=1)},
        {"recorded_at": T},
        {"recorded_by": "me"},
        {"digest": "0" * 64},
        {"previous": "0" * 64},
        {"contact_id": "", "evidence": {"erased": "0" * 64}},
    ],
)
def test_any_changed_entry_is_detected(org, recorded, change):
    first, second, _ = recorded
    ConsentEntry.objects.filter(pk=second.pk).update(**change)
    assert ledger.verify(org.pk) == ledger.Verification(1, 0, first.digest, second.pk)
    output = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("verify_consent", stdout=output)
    assert failed.value.returncode == 1
    assert output.getvalue() == f"acme: entry {second.pk} does not fit; the 1 before it do.\n"


@pytest.mark.promise("consent-6")
def test_removed_entry_is_detected(org, recorded):
    first, second, third = recorded
    second.delete()
    assert ledger.verify(org.pk) == ledger.Verification(1, 0, first.digest, third.pk)


def test_chain_longer_than_a_batch_is_verified(org):
    ledger.record(org.pk, [decision()] * (2 * ledger.VERIFY_BATCH + 1))
    assert ledger.verify(org.pk).entries == 2 * ledger.VERIFY_BATCH + 1


def test_one_organization_can_be_checked_separately(org, recorded):
    other = factories.organization("other")
    ledger.record(other.pk, [decision()])
    ConsentEntry.objects.filter(organization=other).update(status="OPTED_OUT")
    assert run("--org", "acme").startswith("acme: 3 entries hold")
    with pytest.raises(CommandError, match="does not hold: other"):
        run()
    with pytest.raises(CommandError, match="There is no organization nobody"):
        run("--org", "nobody")


@pytest.mark.promise("consent-5")
def test_erasing_a_person_keeps_the_chain_valid(org, recorded):
    other = factories.organization("other")
    ledger.record(other.pk, [decision()])
    head = recorded.last().digest
    assert ledger.erase(org.pk, "ada") == 2
    assert ledger.erase(org.pk, "ada") == 0
    kept = recorded.all()
    assert [row.contact_id for row in kept] == ["", "bob", ""]
    assert [set(row.evidence) for row in kept] == [{"erased"}, {"form", "é"}, {"erased"}]
    assert [row.status for row in kept] == ["OPTED_IN", "OPTED_IN", "OPTED_OUT"]
    assert ledger.verify(org.pk) == ledger.Verification(3, 2, head, None)
    assert ConsentEntry.objects.get(organization=other).contact_id == "ada"
    ledger.record(org.pk, [decision("cy")])
    assert ledger.verify(org.pk).entries == 4


@pytest.mark.parametrize("count", [1, 30])
def test_erasing_takes_two_statements_in_a_transaction(org, count, django_assert_num_queries):
    ledger.record(org.pk, [decision()] * count)
    with django_assert_num_queries(5):  # savepoint, lock, read, write, release
        assert ledger.erase(org.pk, "ada") == count


def test_a_changed_entry_is_detected_after_the_erasure(org, recorded):
    ledger.erase(org.pk, "ada")
    third = recorded.last()
    ConsentEntry.objects.filter(pk=third.pk).update(status="OPTED_IN")
    assert ledger.verify(org.pk).broken == third.pk


def test_chain_continues_after_an_entry_from_a_fast_clock(org):
    (first,) = ledger.record(org.pk, [decision()])
    ahead = UUID("ffff" + str(first.pk)[4:])
    ConsentEntry.objects.get(pk=first.pk).delete()
    ConsentEntry.objects.create(
        id=ahead, organization=org, contact_id="ada", channel="ALL", category="ALL",
        status="OPTED_IN", source="API", occurred_at=T, previous="", digest="d",
    )  # fmt: skip
    later = ledger.record(org.pk, [decision(), decision()])
    assert ahead < later[0].pk < later[1].pk
    assert ConsentEntry.objects.get(pk=later[0].pk).previous == "d"


def test_a_time_ahead_does_not_outlast_a_later_objection(org):
    ledger.record(org.pk, [decision(occurred_at=datetime(2199, 1, 1, tzinfo=UTC))])
    ledger.record(org.pk, [decision(status="OPTED_OUT", occurred_at=None)])
    present = current_consent.read(org.pk, ["ada"], ["EMAIL"], ["MARKETING"])
    assert present.allows("ada", "EMAIL", "MARKETING", opt_in=True) is False


@pytest.mark.promise("consent-6")
def test_each_entry_holds_the_digest_of_the_one_before(org):
    for _ in range(2):
        ledger.record(org.pk, [decision()] * 2)
    entries = list(ConsentEntry.objects.order_by("id").values_list("previous", "digest"))
    assert [previous for previous, _ in entries] == ["", *(digest for _, digest in entries[:-1])]
    assert len({digest for _, digest in entries}) == 4
