"""Helpers for the dispatcher's tests."""

from messaging.models import WebhookDelivery
from messaging.webhooks import replays


def queue(row, count=1):
    """Queue test events for an endpoint."""
    return [replays.queue_test(row) for _ in range(count)]


def states():
    return list(WebhookDelivery.objects.order_by("id").values_list("status", "tries"))
