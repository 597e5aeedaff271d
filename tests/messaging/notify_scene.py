"""What the tests of telling endpoints share."""

from messaging import replaying
from messaging.models import Notice


def note(row, count=1):
    """Note so many tests for an endpoint."""
    return [replaying.add_test(row) for _ in range(count)]


def states():
    return list(Notice.objects.order_by("id").values_list("status", "tries"))
