"""Celery tasks of cells."""

from celery import shared_task

from rme.cells import pauses
from rme.cells.abandoned import end_abandoned_pauses


@shared_task(name="tenants.settle_pauses")
def settle_pauses() -> None:
    """End the pauses of killed moves: their organizations go on here, or are served here now."""
    end_abandoned_pauses()
    pauses.settle()
