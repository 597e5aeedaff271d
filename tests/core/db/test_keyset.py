"""Pages by keyset: together they have each row once."""

import pytest
from django.db.models import Q

from messaging.models import Suppression
from rme.core.db import keyset

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("condition", "scanned", "numbers"),
    [
        (None, None, [[9, 8, 7], [6, 5, 4], [3, 2, 1], [0]]),
        (Q(reason="STOP"), None, [[8, 6, 4], [2, 0]]),
        # a page looks at four rows
        (Q(reason="STOP"), 4, [[8, 6], [4, 2], [0]]),
        (Q(reason="STOP"), 8, [[8, 6, 4], [2, 0]]),
        (Q(reason="MANUAL"), 1, [[9], [], [7], [], [5], [], [3], [], [1], [], []]),
    ],
)
def test_pages_have_each_row_once(org, condition, scanned, numbers):
    for number in range(10):
        Suppression.objects.create(
            organization=org,
            channel="SMS",
            address=f"+1202555010{number}",
            reason="MANUAL" if number % 2 else "STOP",
        )
    pages, before = [], None
    while before is not None or not pages:
        rows, before = keyset.page(
            Suppression.objects.all(), condition, limit=3, before=before, scanned=scanned
        )
        pages.append([int(row.address[-1]) for row in rows])
    assert pages == numbers
