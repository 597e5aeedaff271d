"""Reading the request log, newest first.

Status, route and application have no index: a page with these filters scans a limited number of
requests, and its cursor continues behind them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rme.core import ids
from rme.tenants.models import RequestLogEntry

SCAN_LIMIT = 10_000
"""The most requests that a page with a filter without an index scans."""


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

    @property
    def has_no_index(self) -> bool:
        has_filter = self.status_class or self.route or self.application_id
        return bool(has_filter) and self.request_id is None


@dataclass(frozen=True, slots=True)
class RequestPage:
    """Requests, and the id after which the next page begins; None on the last."""

    rows: Sequence[RequestLogEntry]
    following: UUID | None


def find(
    organization_id: str, wanted: RequestFilter, *, limit: int, before: UUID | None = None
) -> RequestPage:
    """Return a page of an organization's requests: one query; two if a filter has no index."""
    rows = RequestLogEntry.objects.filter(organization_id=organization_id)
    if wanted.request_id:
        rows = rows.filter(request_id=wanted.request_id)
    if wanted.since:
        rows = rows.filter(pk__gte=ids.at_least(wanted.since))
    if wanted.until:
        rows = rows.filter(pk__lt=ids.at_least(wanted.until))
    if before:
        rows = rows.filter(pk__lt=before)
    border = None
    if wanted.has_no_index:
        last = rows.order_by("-pk").values_list("pk", flat=True)
        border = next(iter(last[SCAN_LIMIT - 1 : SCAN_LIMIT]), None)
        if border is not None:
            rows = rows.filter(pk__gte=border)
    if wanted.status_class:
        least = wanted.status_class * 100
        rows = rows.filter(status__gte=least, status__lt=least + 100)
    if wanted.route:
        rows = rows.filter(route=wanted.route)
    if wanted.application_id:
        rows = rows.filter(application_id=wanted.application_id)
    found = list(rows.order_by("-pk")[: limit + 1])
    if len(found) > limit:
        return RequestPage(found[:limit], found[limit - 1].pk)
    return RequestPage(found, border)
