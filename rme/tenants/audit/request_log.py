"""The request log: REST requests by request id, for some days (REQUEST_LOG_DAYS).

`rme.asgi` starts the thread that stores what requests left in `rme.core.http.request_records`: one
COPY for all requests of a process since the last one. Its cost is in docs/benchmarks.md
(`make bench ARGS=request_log`).
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error, connection
from django.db.models import Q

from rme.core import ids
from rme.core.db import availability, keyset, partitions
from rme.core.db.periods import Period
from rme.core.http import request_records
from rme.core.http.request_records import LOST, RequestRecord
from rme.tenants.models import RequestLogEntry

log = structlog.get_logger(__name__)

STORE_SECONDS = 1.0
"""Between two batches: what a process that is killed loses."""
BATCH = 5_000
TABLE = RequestLogEntry._meta.db_table
SCAN_LIMIT = 10_000
"""The most requests that a page with a filter without an index scans; its cursor continues behind
them.
"""
_COPY = f"""COPY {TABLE} (id, organization_id, application_id, request_id,
  method, route, status, code, microseconds, message_id) FROM STDIN"""


# --- storing --------------------------------------------------------------------------------------
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
            LOST.add(by=len(records))
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
    stored_id = message_id if message_id and ids.is_canonical(message_id) else "\\N"
    return (
        f"{ids.text_id_of(record.at)}\t{record.organization_id}\t"
        f"{record.application_id}\t{record.request_id}\t{record.method}\t{record.route}\t"
        f"{record.status}\t{code}\t{int(record.seconds * 1e6)}\t{stored_id}\n"
    )


# --- reading --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which requests are meant. What is None or empty matches any."""

    request_id: UUID | None = None
    status_class: int | None = None
    """2, 4 or 5: the first digit of the status."""
    route: str = ""
    application_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


def find(
    organization_id: str, query: RequestFilter, *, limit: int, before: UUID | None = None
) -> keyset.Page[RequestLogEntry]:
    """Return a page of an organization's requests: one query; two if a filter has no index."""
    rows = RequestLogEntry.objects.filter(organization_id=organization_id)
    if query.request_id:
        rows = rows.filter(request_id=query.request_id)
    if query.since:
        rows = rows.filter(pk__gte=ids.at_least(query.since))
    if query.until:
        rows = rows.filter(pk__lt=ids.at_least(query.until))
    condition = Q()
    if query.status_class:
        least = query.status_class * 100
        condition &= Q(status__gte=least, status__lt=least + 100)
    if query.route:
        condition &= Q(route=query.route)
    if query.application_id:
        condition &= Q(application_id=query.application_id)
    scanned = SCAN_LIMIT if condition and query.request_id is None else None
    return keyset.page(rows, condition, limit=limit, before=before, scanned=scanned)


def first(organization_id: str, application_id: int, since: datetime) -> RequestLogEntry | None:
    """Return an application's oldest request since a time; at most four queries.

    No index has the application: it looks at the oldest SCAN_LIMIT requests, then at the newest.
    """
    rows = RequestLogEntry.objects.filter(
        organization_id=organization_id, pk__gte=ids.at_least(since)
    )
    for order, lookup in (("pk", "pk__lte"), ("-pk", "pk__gte")):
        keys = rows.order_by(order).values_list("pk", flat=True)
        border = keys[SCAN_LIMIT - 1 : SCAN_LIMIT].first()
        part = rows.filter(**{lookup: border}) if border else rows
        entry = part.filter(application_id=application_id).order_by("pk").first()
        if entry or border is None:
            return entry
    return None


# --- retention ------------------------------------------------------------------------------------
def partition_periods() -> dict[str, Period]:
    """Return the length of the partitions, by the name of the table."""
    return {TABLE: Period.DAY}


def drop_old(*, now: datetime) -> None:
    """Drop the days that have passed entirely; one that is in use waits for the next run."""
    age = timedelta(days=settings.REQUEST_LOG_DAYS)
    for part in partitions.past([TABLE], before=now - age):
        partitions.drop(part)
