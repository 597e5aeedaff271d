"""The figures of random histories: each delivery is in exactly one, and they are the lists'."""

import random
from collections import Counter

import pytest

from messaging.domain import figures
from messaging.domain.figures import STATUSES, Figure
from messaging.domain.statuses import TRANSITIONS, Status
from messaging.store.reports.deliveries import DeliveryFilter, DeliveryRow

HISTORIES = 10_000
FIRST = (Status.ACCEPTED, Status.SCHEDULED, Status.BLOCKED, Status.FAILED, Status.EXPIRED)
"""The statuses in which accept stores a delivery."""


def delivery(status, channel):
    """Return a row as the list reads it."""
    fields = dict.fromkeys(DeliveryRow._fields)
    return DeliveryRow(**{**fields, "status": status, "channel": channel, "test": False})


def history(chance):
    """Return the statuses of a delivery, each of which may follow the one before."""
    statuses = [chance.choice(FIRST)]
    while (following := sorted(TRANSITIONS[statuses[-1]])) and chance.random() < 0.8:
        statuses.append(chance.choice(following))
    return statuses


def test_figures_of_10000_histories_add_up_and_are_those_of_the_lists():
    chance = random.Random(35)
    for _ in range(HISTORIES):
        rows = [
            delivery(history(chance)[-1], chance.choice(("EMAIL", "SMS")))
            for _ in range(chance.randint(0, 6))
        ]
        shown = figures.figures(Counter(row.status for row in rows))
        assert sum(shown.values()) == len(rows)
        lists = {
            figure: [row for row in rows if DeliveryFilter(statuses=STATUSES[figure]).matches(row)]
            for figure in Figure
        }
        assert {figure: len(each) for figure, each in lists.items()} == shown
        assert Counter(row for each in lists.values() for row in each) == Counter(rows)


def test_histories_reach_every_status():
    chance = random.Random(35)
    reached = {status for _ in range(HISTORIES) for status in history(chance)}
    assert reached == set(Status)


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({}, None),
        ({Status.BLOCKED: 5, Status.ACCEPTED: 3}, None),
        ({Status.DELIVERED: 1, Status.SENT: 1, Status.FAILED: 2, Status.CANCELLED: 9}, 0.5),
    ],
)
def test_success_is_of_what_was_tried(counts, share):
    assert figures.success(figures.figures(counts)) == share
