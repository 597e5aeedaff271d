"""Deliveries of an organization, newest message first, for the console: filters that combine.

Paging is by keyset. The messages of an organization, and those to one contact, are found by an
index; the other filters have none. With these a request scans a limited number of messages: its
page may be short or empty, and its cursor continues behind them.

The statement is built as text for the same reason as in `history`: its plan depends on its form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from messaging.archive import reading as archive
from messaging.archive.records import ArchivedMessage
from messaging.models import Delivery, Message, delivery_lookup
from messaging.models.statuses import Status
from rme.core import ids

SCAN_LIMIT = 5_000
"""The most messages scanned by one request with a filter that has no index."""
_M, _D = Message._meta.db_table, Delivery._meta.db_table


class Cursor(NamedTuple):
    """The last delivery of a page; `position` -1: the message itself is still to be read."""

    message_id: UUID
    position: int


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries are meant. What is None or empty matches any."""

    statuses: Sequence[str] = ()
    held: bool = False
    """In manual review; their index finds the messages."""
    channel: str | None = None
    category: str | None = None
    template: str | None = None
    provider: str | None = None
    """The name of a provider account."""
    reason: str | None = None
    contact_ids: Sequence[str] = ()
    message_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    test: bool | None = None

    def matches(self, row: "DeliveryRow") -> bool:
        """Return whether a delivery that is not in a table is meant; the range of ids is known."""
        return (
            (not self.statuses or row.status in self.statuses)
            and (not self.channel or row.channel == self.channel)
            and (not self.category or row.category == self.category)
            and (not self.template or row.template == self.template)
            and (not self.provider or row.provider == self.provider)
            and (not self.reason or row.reason == self.reason)
            and (not self.contact_ids or row.contact_id in self.contact_ids)
            and (self.test is None or row.test is self.test)
        )

    @property
    def has_no_index(self) -> bool:
        """Return whether a filter without an index may skip rows."""
        return bool(
            self.statuses
            or self.channel
            or self.category
            or self.template
            or self.provider
            or self.reason
            or self.test is not None
        )


class DeliveryRow(NamedTuple):
    """A delivery, with what its message has for all recipients."""

    id: UUID
    message_id: UUID
    position: int
    contact_id: str
    channel: str
    address: str | None
    status: str
    reason: str | None
    detail: str | None
    waiting: str | None
    provider: str | None
    scheduled_for: datetime | None
    due_at: datetime | None
    updated_at: datetime
    template_version_id: int | None
    category: str
    template: str | None
    test: bool
    created_at: datetime

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.message_id, self.position)

    @property
    def is_held(self) -> bool:
        """Return whether it is in manual review."""
        return self.status == Status.UNKNOWN and self.due_at is None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Deliveries, and the cursor of the next page; None on the last."""

    rows: Sequence[DeliveryRow]
    following: Cursor | None


_OF_MESSAGE = ("category", "template", "test", "created_at")
_COLUMNS = ", ".join(
    f"{'m' if name in _OF_MESSAGE else 'd'}.{name}" for name in DeliveryRow._fields
)


Value = str | int | datetime | UUID | list[str]


@dataclass(slots=True)
class _Conditions:
    """Conditions of SQL and the values of their parameters, of messages and of deliveries."""

    of_message: list[str]
    message_values: list[Value]
    of_delivery: list[str]
    delivery_values: list[Value]


def find(
    organization_id: str,
    wanted: DeliveryFilter,
    *,
    limit: int,
    cursor: Cursor | None = None,
    scan: int = SCAN_LIMIT,
    archived: bool = True,
) -> DeliveryPage:
    """Return a page of deliveries: one query, two with a filter that has no index.

    With an archive, one more, or two; without those in it if they are not wanted.
    """
    page = _stored(organization_id, wanted, limit, cursor, scan)
    if not archived or wanted.held or not archive.is_on():
        return page
    return _with_archived(organization_id, wanted, limit, cursor, page)


def _stored(
    organization_id: str, wanted: DeliveryFilter, limit: int, cursor: Cursor | None, scan: int
) -> DeliveryPage:
    """Return a page of the deliveries that PostgreSQL has."""
    conditions = _conditions(organization_id, wanted, cursor)
    border = None
    if wanted.has_no_index and not wanted.contact_ids and not wanted.held:
        border = _border(conditions, scan)
        if border:
            conditions.of_message.append("m.id >= %s")
            conditions.message_values.append(border)
    _skip(conditions, wanted, cursor)
    text = (
        f"SELECT {_COLUMNS} FROM {_M} m JOIN LATERAL (SELECT * FROM {_D} d "
        f"WHERE {' AND '.join(conditions.of_delivery)} OFFSET 0) d ON true "
        f"WHERE {' AND '.join(conditions.of_message)} ORDER BY m.id DESC, d.position LIMIT %s"
    )
    values = [*conditions.delivery_values, *conditions.message_values, limit + 1]
    with connection.cursor() as reading:
        reading.execute(text, values)
        rows = [DeliveryRow(*row) for row in reading.fetchall()]
    if len(rows) > limit:
        return DeliveryPage(rows[:limit], rows[limit - 1].cursor)
    return DeliveryPage(rows, Cursor(border, 32_767) if border else None)


def _order(cursor: Cursor) -> tuple[int, int]:
    return -cursor.message_id.int, cursor.position


def _with_archived(
    organization_id: str,
    wanted: DeliveryFilter,
    limit: int,
    cursor: Cursor | None,
    page: DeliveryPage,
) -> DeliveryPage:
    """Return a page with the deliveries of the archive that belong on it, as in the history."""
    since, end = archive.LEAST, archive.GREATEST
    if wanted.message_id:
        since, end = wanted.message_id, UUID(int=wanted.message_id.int + 1)
    if wanted.since:
        since = max(since, ids.at_least(wanted.since))
    if wanted.until:
        end = min(end, ids.at_least(wanted.until))
    if cursor:
        end = min(end, UUID(int=cursor.message_id.int + 1))
    if page.following:
        since = max(since, page.following.message_id)
    archived = archive.page(
        organization_id,
        since=since,
        end=end,
        contacts=wanted.contact_ids,
        matches=lambda record: bool(_rows(record, wanted, cursor)),
        wanted=limit + 1,
    )
    found = {row.cursor: row for each in archived.records for row in _rows(each, wanted, cursor)}
    found |= {row.cursor: row for row in page.rows}
    borders = [page.following] if page.following else []
    if archived.border:
        borders.append(Cursor(archived.border, 32_767))
    border = min(borders, key=_order, default=None)
    rows = sorted(found.values(), key=lambda row: _order(row.cursor))
    if border:
        rows = [row for row in rows if _order(row.cursor) <= _order(border)]
    if len(rows) > limit:
        return DeliveryPage(rows[:limit], rows[limit - 1].cursor)
    return DeliveryPage(rows, border)


def _rows(
    record: ArchivedMessage, wanted: DeliveryFilter, cursor: Cursor | None
) -> list[DeliveryRow]:
    """Return those of an archived message's deliveries that match."""
    message = record.message
    of_message = {name: getattr(message, name) for name in _OF_MESSAGE}
    rows = [
        DeliveryRow(
            **{
                name: of_message[name] if name in _OF_MESSAGE else getattr(delivery, name)
                for name in DeliveryRow._fields
            }
        )
        for delivery in record.deliveries
    ]
    return [
        row
        for row in rows
        if wanted.matches(row) and (not cursor or _order(row.cursor) > _order(cursor))
    ]


def of_message(
    organization_id: str, message_id: UUID, *, limit: int, cursor: Cursor | None = None
) -> DeliveryPage:
    """Return a page of a message's recipients, in their order; one query."""
    return find(organization_id, DeliveryFilter(message_id=message_id), limit=limit, cursor=cursor)


def within(wanted: DeliveryFilter, statuses: Sequence[str]) -> DeliveryFilter:
    """Return a filter for those of its deliveries that have one of the statuses."""
    chosen = [each for each in wanted.statuses if each in statuses] or list(statuses)
    return replace(wanted, statuses=chosen)


def _conditions(organization_id: str, wanted: DeliveryFilter, cursor: Cursor | None) -> _Conditions:
    found = _Conditions(
        ["m.organization_id = %s"], [organization_id],
        [delivery_lookup.is_of_message("d", "m.id"), "d.organization_id = %s"], [organization_id],
    )  # fmt: skip
    if wanted.message_id:
        found.of_message.append("m.id = %s")
        found.message_values.append(wanted.message_id)
    if wanted.contact_ids:
        # The index of contacts finds the messages, so the others are not read.
        found.of_message.append(
            f"m.id IN (SELECT c.message_id FROM {_D} c WHERE c.organization_id = %s "
            f"AND {delivery_lookup.is_to_contacts('c', '%s::text[]')})"
        )
        contact_ids = list(wanted.contact_ids)
        found.message_values += [organization_id, contact_ids, contact_ids]
        found.of_delivery.append("d.contact_id = ANY(%s)")
        found.delivery_values.append(contact_ids)
    if wanted.held:
        # As an array, so that it reads only these messages, whatever the planner expects.
        found.of_message.append(
            f"m.id = ANY(ARRAY(SELECT h.message_id FROM {_D} h WHERE h.organization_id = %s "
            "AND h.status = 'UNKNOWN' AND h.due_at IS NULL))"
        )
        found.message_values.append(organization_id)
        found.of_delivery.append("d.status = 'UNKNOWN' AND d.due_at IS NULL")
    if cursor:
        found.of_message.append("m.id <= %s")
        found.message_values.append(cursor.message_id)
    if wanted.since:
        found.of_message.append("m.id >= %s")
        found.message_values.append(ids.at_least(wanted.since))
    if wanted.until:
        found.of_message.append("m.id < %s")
        found.message_values.append(ids.at_least(wanted.until))
    return found


def _border(conditions: _Conditions, scan: int) -> UUID | None:
    """Return the id of the last message that is scanned; None: all are."""
    with connection.cursor() as reading:
        reading.execute(
            f"SELECT m.id FROM {_M} m WHERE {' AND '.join(conditions.of_message)} "
            "ORDER BY m.id DESC OFFSET %s LIMIT 1",
            [*conditions.message_values, scan - 1],
        )
        row = reading.fetchone()
    return row[0] if row else None


def _skip(conditions: _Conditions, wanted: DeliveryFilter, cursor: Cursor | None) -> None:
    """Add the conditions that have no index."""
    if cursor:
        conditions.of_message.append("(m.id < %s OR d.position > %s)")
        conditions.message_values += [cursor.message_id, cursor.position]
    for column, value in (("category", wanted.category), ("template", wanted.template)):
        if value:
            conditions.of_message.append(f"m.{column} = %s")
            conditions.message_values.append(value)
    if wanted.test is not None:
        conditions.of_message.append("m.test = %s")
        conditions.message_values.append(wanted.test)
    for column, value in (
        ("channel", wanted.channel),
        ("provider", wanted.provider),
        ("reason", wanted.reason),
    ):
        if value:
            conditions.of_delivery.append(f"d.{column} = %s")
            conditions.delivery_values.append(value)
    if wanted.statuses:
        conditions.of_delivery.append("d.status = ANY(%s)")
        conditions.delivery_values.append(list(wanted.statuses))
