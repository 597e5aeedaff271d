"""Celery tasks of cells."""

from celery import shared_task

from rme.tenants.cells import pauses


@shared_task(name="tenants.settle_pauses")
def settle_pauses() -> None:
    """Serve organizations whose move was killed between its switch and its end."""
    pauses.settle()
