"""The database's clock, also while the database is away."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction

from rme.core import cache
from rme.core.db import clock
from tests.clocks import StandingClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def standing(monkeypatch):
    """Return the clock of this machine, with which the database's is advanced."""
    clock._readings.clear()
    yield StandingClock(monkeypatch, cache, clock)
    clock._readings.clear()


def lost(*_):
    raise OperationalError("lost")


def test_clock_continues_from_its_last_reading_while_the_database_is_down(standing):
    before = clock.now()
    standing.advance(15)
    with connection.execute_wrapper(lost):
        assert clock.now() == before + timedelta(seconds=15)
        standing.advance(600)
        assert clock.now() == before + timedelta(seconds=615)
    standing.advance(10)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=60)  # read anew


def test_clock_never_read_raises_while_the_database_is_down(standing):
    with connection.execute_wrapper(lost), pytest.raises(OperationalError):
        clock.now()


def test_a_failure_within_a_transaction_is_raised_since_it_has_ended_the_transaction(standing):
    clock.now()
    standing.advance(15)
    with pytest.raises(OperationalError), transaction.atomic(), connection.execute_wrapper(lost):
        clock.now()
