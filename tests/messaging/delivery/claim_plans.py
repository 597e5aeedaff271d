"""What claims, the sweep and a scrape read does not depend on statistics: of a few rows a few,
however many wait, though PostgreSQL believe that none do.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from messaging.consent.gates import Candidate, begin_check
from messaging.delivery import claims, sweeper
from messaging.domain.gates import GateRefusal, GateVerdict
from messaging.domain.policy import CategoryRules, FrequencyCap
from messaging.domain.progress.receipts import Receipt
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status
from messaging.feedback import receipts
from messaging.models import PARTITIONED, Attempt, Delivery
from messaging.reports import metrics
from messaging.store import due_organizations
from messaging.store.reports import backlogs, gauges
from messaging.store.transitions import apply_transitions
from rme.core import ids
from rme.core.db import prepared_statements, sql
from rme.core.provider import DeliveryReceipt
from rme.tenants.models import Organization
from tests.messaging.delivery import backlog_scene

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = 5_000
ROWS = 50
NEXT_MONTH = (datetime.now(UTC).replace(day=1) + timedelta(days=33)).replace(day=2)


def _some(status: str) -> list[Delivery]:
    return list(Delivery.objects.filter(status=status).order_by("-id")[:ROWS])


def _transition(rows: list[Delivery]) -> None:
    apply_transitions(
        [Transition(id=row.pk, fence=0, status=Status.SENT, due_at=None) for row in rows]
    )


def _record(rows: list[Delivery]) -> None:
    outcomes = [
        {"id": row.pk, "organization_id": row.organization_id, "outcome": "Accepted"}
        for row in rows
    ]
    sql.update_partitioned(Attempt, outcomes)


def _settle(rows: list[Delivery]) -> None:
    with transaction.atomic():
        receipts.apply_provider_receipts(
            {row.pk: [(7, DeliveryReceipt(row.pk, "delivered"))] for row in rows}
        )


CASES: dict[str, tuple[Status, Callable[[list[Delivery]], object], int]] = {
    "claim": (Status.ACCEPTED, lambda _: claims.claim("o01", "EMAIL", 1, ROWS), ROWS),
    "claim_many": (
        Status.ACCEPTED,
        lambda _: claims.claim_many("EMAIL", 1, {"o02": 20, "o03": 20, "o00": 20}, ROWS),
        ROWS,
    ),
    "ready": (Status.ACCEPTED, lambda _: claims.ready("EMAIL"), ROWS),
    "ready_on_another_channel": (Status.ACCEPTED, lambda _: claims.ready("SMS"), ROWS),
    "waiting_channels": (Status.ACCEPTED, lambda _: due_organizations.waiting_channels(), ROWS),
    "look": (Status.ACCEPTED, lambda _: backlogs.count_ready("o01", "EMAIL", 1, ROWS), ROWS),
    "release": (Status.SCHEDULED, lambda _: sweeper.release(ROWS), ROWS),
    "reclaim": (Status.SENDING, lambda _: sweeper.reclaim(), sweeper.BATCH),
    "resolve_unknown": (Status.UNKNOWN, lambda _: sweeper.resolve_unknown(), sweeper.BATCH),
    "fall_back": (Status.SENT, lambda _: sweeper.fall_back(), sweeper.BATCH),
    "advance": (Status.SENDING, _transition, ROWS),
    "record": (Status.SENDING, _record, ROWS),
    "receipts": (
        Status.SENT,
        lambda rows: receipts.apply([Receipt(row.pk, EventType.DELIVERED) for row in rows]),
        ROWS,
    ),
    "settle": (
        Status.SENT,
        _settle,
        ROWS,
    ),
}


@pytest.fixture
def no_autovacuum() -> Iterator[None]:
    """Leave the statistics to the test."""
    _set("SET (autovacuum_enabled = off)")
    yield
    _set("RESET (autovacuum_enabled)")


def _set(what: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits "
            "WHERE inhparent = ANY(%s::regclass[])",
            [[model._meta.db_table for model in PARTITIONED]],
        )
        partitions = [name for (name,) in cursor.fetchall()]
        for name in [*partitions, *(model._meta.db_table for model in backlog_scene.GATED)]:
            cursor.execute(f"ALTER TABLE {name} {what}")


# Where a transaction keeps VACUUM from ending a table, its pages are kept, with no rows known.
VACUUMS = {"empty": "ANALYZE", "empty pages": "ANALYZE, TRUNCATE off"}


@pytest.mark.parametrize("known", [*VACUUMS, "next month"])
@pytest.mark.parametrize("case", CASES)
def test_reads_of_a_call_behind_a_backlog(case, known, no_autovacuum):
    status, call, count = CASES[case]
    for number in range(4):
        Organization.objects.create(pk=f"o0{number}", name="O")
    now = int(datetime.now(UTC).timestamp() * 1000)
    since = int(NEXT_MONTH.timestamp() * 1000) if known == "next month" else now
    for _ in range(8):  # a plan is kept from the sixth time on, and next month is empty then
        backlog_scene.fill(status, 8, since=now)
        call(_some(status))
    backlog_scene.empty(VACUUMS.get(known, ""))
    if known in VACUUMS:
        call([])
    backlog_scene.fill(status, COUNT, since=since)
    backlog_scene.fill(status, 8, since=since, channel="SMS")
    rows = _some(status)
    entries, blocks = backlog_scene.read_by(lambda: call(rows))
    assert entries < 8 * count + 200
    assert blocks < 40 * count + 200


NEWS = CategoryRules(
    "NEWS",
    opt_in=True,
    resend_unknown=True,
    expires_after=timedelta(1),
    cap=FrequencyCap(1, timedelta(30)),
)


def _check_gates(number: int) -> list[GateVerdict]:
    """Check contacts of four organizations, each of whom had a message."""
    candidates = [
        Candidate(f"o0{i % 4}", f"c{i}", "EMAIL", f"c{i}@example.com", NEWS, str(ids.new_id()))
        for i in range(1, number + 1)
    ]
    with prepared_statements.transaction() as batch:
        return begin_check(candidates, batch).read().results


@pytest.mark.parametrize("known", ["nothing", "rows that are gone"])
def test_reads_of_the_gates_behind_many_entries(known, no_autovacuum):
    for number in range(4):
        Organization.objects.create(pk=f"o0{number}", name="O")
    now = int(datetime.now(UTC).timestamp() * 1000)
    if known == "rows that are gone":
        backlog_scene.fill(Status.SENT, COUNT, since=now)
        backlog_scene.fill_gates(COUNT)
        backlog_scene.analyze()
    backlog_scene.empty(VACUUMS["empty"])
    for _ in range(8):  # a plan is kept from the sixth time on
        _check_gates(ROWS)
    backlog_scene.fill(Status.SENT, COUNT, since=now)
    backlog_scene.fill_gates(COUNT)
    results: list[GateVerdict] = []
    entries, blocks = backlog_scene.read_by(lambda: results.extend(_check_gates(ROWS)))
    assert [result.refusal for result in results] == [GateRefusal.FREQUENCY_CAPPED] * ROWS
    assert entries < 8 * ROWS + 200
    assert blocks < 40 * ROWS + 200


def _scrape() -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


@pytest.mark.parametrize("known", ["nothing", "rows that are gone"])
def test_reads_of_a_scrape_behind_a_backlog(known, no_autovacuum):
    for number in range(4):
        Organization.objects.create(pk=f"o0{number}", name="O")
    now = int(datetime.now(UTC).timestamp() * 1000)
    if known == "rows that are gone":
        backlog_scene.fill(Status.SENT, COUNT, since=now)
        backlog_scene.analyze()
    backlog_scene.empty(VACUUMS["empty"])
    # Nothing is left to do for these, as for those of the past.
    backlog_scene.fill(Status.SENT, 10 * COUNT, since=now, due_at="NULL::timestamptz")
    for status in (Status.ACCEPTED, Status.SENDING, Status.SCHEDULED):
        backlog_scene.fill(status, 3 * COUNT, priority=0, since=now)
    found: dict[tuple[str, ...], float] = {}
    entries, blocks = backlog_scene.read_by(lambda: found.update(_scrape()))
    counted = {
        ("rme_deliveries_ready", "EMAIL", "0"),
        ("rme_deliveries_overdue", "SENDING"),
        ("rme_deliveries_overdue", "SCHEDULED"),
        ("rme_recent_attempts", "EMAIL", ""),
    }
    assert {each for each, value in found.items() if value == gauges.COUNTED} == counted
    assert 3600 <= found["rme_deliveries_ready_oldest_seconds", "EMAIL", "0"] < 3700
    read = (len(counted) + 1) * gauges.COUNTED  # the ages since acceptance, too
    assert 0 < found["rme_transactional_oldest_seconds", "EMAIL"] < 600
    assert entries < read + 1000
    assert blocks < read + 1000
