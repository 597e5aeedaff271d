"""The history of circuits: written on a change alone, by the process that caused it."""

from datetime import timedelta

import pytest

from messaging.delivery.accounts import circuit_history, circuits
from messaging.models import CircuitChange
from rme.core import ids
from rme.core.db import clock
from rme.core.outcomes import Accepted, Misconfigured, Unknown

pytestmark = pytest.mark.django_db


def changes(account_id=1):
    found = circuit_history.latest([account_id], 20)[account_id]
    return [(row.is_open, row.why) for row in found]


def test_each_change_is_stored_once_with_its_reason(
    redis, redis_clock, settings, django_assert_num_queries
):
    clock.now()  # the first asks the database
    with django_assert_num_queries(0):
        circuit_history.report([(1, Accepted())] * 30)
    with django_assert_num_queries(1):
        circuit_history.report([(1, Misconfigured("key")), (2, Misconfigured("key"))])
    with django_assert_num_queries(0):
        circuit_history.report([(1, Misconfigured("key"))])
    redis_clock.advance(settings.CIRCUIT_OPEN_SECONDS + 1)
    circuit_history.report([(1, Unknown("no answer"))])
    redis_clock.advance(settings.CIRCUIT_OPEN_SECONDS + 1)
    circuit_history.report([(1, Accepted())] * circuits.PROBES)
    circuit_history.report([(1, Unknown("no answer"))] * 60)
    assert changes() == [
        (True, "FAILING"), (False, "ANSWERED"), (True, "PROBE_FAILED"), (True, "REFUSED"),
    ]  # fmt: skip
    assert changes(2) == [(True, "REFUSED")]
    assert circuit_history.latest([3], 5) == {3: []}


def test_old_changes_are_deleted(settings):
    settings.CIRCUIT_HISTORY_DAYS = 30
    for days in (1, 29, 31):
        at = clock.now() - timedelta(days=days)
        CircuitChange.objects.create(
            id=ids.at_least(at), account_id=days, is_open=True, why="FAILING", at=at
        )
    circuit_history.purge()
    assert sorted(CircuitChange.objects.values_list("account_id", flat=True)) == [1, 29]
