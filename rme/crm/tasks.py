"""Celery tasks of the records, which are hints as all are: any beat finds what was left."""

import time

import structlog
from celery import shared_task
from kombu.exceptions import KombuError
from redis import RedisError

from rme.core.db import availability
from rme.crm.records import import_file

log = structlog.get_logger(__name__)

IMPORT_SECONDS = 1.0
"""How long an import goes on before others have their turn at the worker."""


def ring_import() -> None:
    """Call a worker to the imports. Never fails: the beat calls again within seconds."""
    try:
        import_records.apply_async(queue="default", ignore_result=True)
    except (RedisError, KombuError, OSError) as error:
        log.warning("wakeup.lost", channel="import", error=type(error).__name__)


@shared_task(name="crm.import_records")
@availability.unlimited()
def import_records() -> None:
    """Import files of records, part by part."""
    until = time.monotonic() + IMPORT_SECONDS
    while import_file.work():
        if time.monotonic() > until:
            ring_import()
            return
