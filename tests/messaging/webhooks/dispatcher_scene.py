"""What the tests of telling endpoints share."""

from messaging.models import WebhookDelivery
from messaging.webhooks import replays


def note(row, count=1):
    """Note so many tests for an endpoint."""
    return [replays.queue_test(row) for _ in range(count)]


def states():
    return list(WebhookDelivery.objects.order_by("id").values_list("status", "tries"))
