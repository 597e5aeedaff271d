"""Celery tasks of outbound webhooks."""

from celery import shared_task

from messaging.webhooks import dispatcher
from rme.core.process import task_requests

QUEUE = "webhooks"
DISPATCH = "messaging.dispatch_webhooks"


@shared_task(name="messaging.notify_endpoints")  # its former name: processes of two releases agree
def dispatch_due_webhooks() -> None:
    """Send the webhook deliveries that are due. Beat requests it every second."""
    dispatcher.dispatch(_wake)


@shared_task(name=DISPATCH)
def dispatch_webhooks() -> None:
    """Send the webhook deliveries that are due, beside the worker that requested this one."""
    task_requests.clear_wakeup(QUEUE)
    dispatcher.dispatch(_wake)


def _wake() -> None:
    """Request another worker, unless one is on its way."""
    task_requests.request_once(QUEUE, DISPATCH, queue=QUEUE)
