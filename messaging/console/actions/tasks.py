"""The Celery task of the console: the actions that people ordered."""

import time

from celery import shared_task

from messaging.console.actions import bulk_actions
from rme.core.db import availability
from rme.core.process import task_requests

RUN_SECONDS = 2.0
"""How long one run works before the worker takes other tasks."""


def request_work() -> None:
    """Request a worker. Never fails: beat requests it again within seconds."""
    task_requests.request(run_bulk_actions.name)


@shared_task(name="messaging.run_bulk_actions")
@availability.unlimited()
def run_bulk_actions() -> None:
    """Do what people ordered, slice by slice; a later run continues."""
    until = time.monotonic() + RUN_SECONDS
    while bulk_actions.work():
        if time.monotonic() > until:
            request_work()
            return
