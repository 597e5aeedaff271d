"""The partitions of the tests of retention."""

from datetime import UTC, datetime

import pytest

from messaging.store.retention import job
from rme.core.db import partitions
from rme.core.db.periods import Period
from tests.messaging.store.retention.retention_scene import TABLES, create, query

END = datetime(2032, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _months(monkeypatch):
    """Make some months of 2030 and 2031, and drop what is left of them. No run is short of time.

    The present months are made again: without partitions no later test can show a plan's fault.
    """
    present = {(each.start, each.period) for each in partitions.past(TABLES, before=END)}
    monkeypatch.setattr(job, "TURN_SECONDS", 600.0)
    monkeypatch.setattr(job, "CONTENT_SECONDS", 600.0)
    for year, month in [(2030, 1), (2030, 4), (2030, 5), (2031, 4), (2031, 5), (2031, 6)]:
        create(TABLES, datetime(year, month, 1, tzinfo=UTC), Period.MONTH)
    yield
    for partition in partitions.past(TABLES, before=END):
        if partition.start.year >= 2030:
            assert partitions.drop(partition)
    query(f"DROP TABLE IF EXISTS {', '.join(f'{table}_kept' for table in TABLES)}")
    for start, period in sorted(present):
        create(TABLES, start, period)
