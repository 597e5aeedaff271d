"""Deliveries of an organization for the console, newest message first, with the archive's."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from messaging.store.archived import ArchivedMessage, archive
from messaging.store.reports import deliveries
from messaging.store.reports.deliveries import (
    LAST_POSITION,
    OF_MESSAGE,
    SCAN_LIMIT,
    Cursor,
    DeliveryFilter,
    DeliveryPage,
    DeliveryRow,
)
from rme.core import ids


def find(
    organization_id: str,
    query: DeliveryFilter,
    *,
    limit: int,
    cursor: Cursor | None = None,
    scan: int = SCAN_LIMIT,
    archived: bool = True,
) -> DeliveryPage:
    """Return a page of deliveries: one query, two with a filter that has no index.

    With an archive, one more, or two; without those in it if they are not wanted.
    """
    page = deliveries.find(organization_id, query, limit=limit, cursor=cursor, scan=scan)
    if not archived or query.held:
        return page
    return _with_archived(organization_id, query, limit, cursor, page)


def _order(cursor: Cursor) -> tuple[int, int]:
    return -cursor.message_id.int, cursor.position


def _with_archived(
    organization_id: str,
    query: DeliveryFilter,
    limit: int,
    cursor: Cursor | None,
    page: DeliveryPage,
) -> DeliveryPage:
    """Return a page with the deliveries of the archive that belong on it, as in the history."""
    least = [
        query.message_id,
        ids.at_least(query.since) if query.since else None,
        page.following.message_id if page.following else None,
    ]
    ends = [
        UUID(int=query.message_id.int + 1) if query.message_id else None,
        ids.at_least(query.until) if query.until else None,
        UUID(int=cursor.message_id.int + 1) if cursor else None,
    ]
    archived = archive().page(
        organization_id,
        since=max(filter(None, least), default=None),
        end=min(filter(None, ends), default=None),
        contacts=query.contact_ids,
        matches=lambda record: bool(_rows(record, query, cursor)),
        limit=limit + 1,
    )
    rows_by_cursor = {
        row.cursor: row for each in archived.records for row in _rows(each, query, cursor)
    }
    rows_by_cursor |= {row.cursor: row for row in page.rows}
    borders = [page.following] if page.following else []
    if archived.border:
        borders.append(Cursor(archived.border, LAST_POSITION))
    border = min(borders, key=_order, default=None)
    rows = sorted(rows_by_cursor.values(), key=lambda row: _order(row.cursor))
    if border:
        rows = [row for row in rows if _order(row.cursor) <= _order(border)]
    if len(rows) > limit:
        return DeliveryPage(rows[:limit], rows[limit - 1].cursor)
    return DeliveryPage(rows, border)


def _rows(
    record: ArchivedMessage, query: DeliveryFilter, cursor: Cursor | None
) -> list[DeliveryRow]:
    """Return those of an archived message's deliveries that match."""
    message = record.message
    of_message = {name: getattr(message, name) for name in OF_MESSAGE}
    rows = [
        DeliveryRow(
            **{
                name: of_message[name] if name in OF_MESSAGE else getattr(delivery, name)
                for name in DeliveryRow._fields
            }
        )
        for delivery in record.deliveries
    ]
    return [
        row
        for row in rows
        if query.matches(row) and (not cursor or _order(row.cursor) > _order(cursor))
    ]


def of_message(organization_id: str, message_id: UUID, *, limit: int) -> DeliveryPage:
    """Return the first page of a message's recipients, in their order; one query."""
    return find(organization_id, DeliveryFilter(message_id=message_id), limit=limit)


def within(query: DeliveryFilter, statuses: Sequence[str]) -> DeliveryFilter:
    """Return a filter for those of its deliveries that have one of the statuses."""
    allowed = [each for each in query.statuses if each in statuses] or list(statuses)
    return replace(query, statuses=allowed)
