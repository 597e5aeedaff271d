"""Storing the request log: one COPY for all requests of a process since the last one.

What it costs a send is in docs/benchmarks.md (`make bench ARGS=request_log`).
"""

import threading
import time
from collections.abc import Sequence

import structlog
from django.conf import settings
from django.db import Error, connection

from rme.core import ids
from rme.core.db import availability
from rme.core.http import request_records
from rme.core.http.request_records import LOST, RequestRecord
from rme.core.redis import counters
from rme.tenants.models import RequestLogEntry

log = structlog.get_logger(__name__)

STORE_SECONDS = 1.0
"""Between two batches: what a process that is killed loses."""
BATCH = 5_000
_COPY = f"""COPY {RequestLogEntry._meta.db_table} (id, organization_id, application_id, request_id,
  method, route, status, code, microseconds, message_id) FROM STDIN"""


def start() -> None:
    """Begin to keep records, and start the thread that stores them; nothing if it is off."""
    if not settings.REQUEST_LOG_DAYS:
        return
    request_records.buffer.is_on = True
    threading.Thread(target=_run, name="request log", daemon=True).start()


def _run() -> None:
    while True:
        time.sleep(STORE_SECONDS)
        store_pending()


def store_pending() -> None:
    """Store the records that wait. What cannot be stored is dropped and counted."""
    while records := request_records.buffer.take(BATCH):
        try:
            _store(records)
        except Error as error:
            counters.add(LOST, by=len(records))
            log.warning("request_log.lost", count=len(records), error=type(error).__name__)
            availability.discard(error)
        availability.give_back()


def _store(records: Sequence[RequestRecord]) -> None:
    availability.refresh()
    text = "".join(map(_line, records))
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(_COPY) as copy:
        copy.write(text)


def _line(record: RequestRecord) -> str:
    """Return a line of COPY. No value has a tab, a line end or a backslash."""
    code, message_id = record.details
    known = message_id if message_id and ids.is_canonical(message_id) else "\\N"
    return (
        f"{ids.text_id_of(record.at)}\t{record.organization_id}\t"
        f"{record.application_id}\t{record.request_id}\t{record.method}\t{record.route}\t"
        f"{record.status}\t{code}\t{int(record.seconds * 1e6)}\t{known}\n"
    )
