"""How many sends accounts take now."""

import pytest

from messaging.domain.availability import Availability, room


@pytest.mark.parametrize(
    ("counts", "requested", "count"),
    [
        ([], 10, 0),
        ([0], 10, 0),
        ([3, 4], 10, 7),
        ([3, 40], 10, 10),
        ([0, None], 10, 10),
    ],
)
def test_room_of_several_accounts(counts, requested, count):
    assert room([Availability(each) for each in counts], requested) == count
