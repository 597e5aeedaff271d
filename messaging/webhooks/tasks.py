"""Celery tasks of outbound webhooks."""

from celery import shared_task

from messaging.webhooks import dispatcher


@shared_task(name="messaging.notify_endpoints")
def notify_endpoints() -> None:
    """Send the webhook events that are due. Beat requests it every second; one worker runs it."""
    dispatcher.dispatch()
