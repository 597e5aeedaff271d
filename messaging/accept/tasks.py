"""The periodic task of accept: it deletes idempotency keys that have expired."""

from celery import shared_task

from messaging.store import idempotency
from rme.core.db import availability


@shared_task(name="messaging.purge_idempotency_keys")
@availability.unlimited()
def purge_idempotency_keys() -> None:
    """Delete idempotency keys that have expired."""
    idempotency.purge()
