"""Deliveries of an organization, newest message first, for the console: filters that combine.

Paging is by keyset. The messages of an organization, and those to one contact, are found by an
index; the other filters have none. With these a request scans a limited number of messages: its
page may be short or empty, and its cursor continues behind them.

The statement is built as text for the same reason as in `history`: its plan depends on its form.

Plan: `m` in the order of its key, or by the ids of a contact's or of held messages; for each the
deliveries by their key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from messaging.domain.statuses import Status
from messaging.models import Delivery, Message
from messaging.store import lookups
from messaging.store.reports.history import Conditions
from rme.core import ids
from rme.core.db import sql

SCAN_LIMIT = 5_000
"""The most messages scanned by one request with a filter that has no index."""
LAST_POSITION = 32_767
"""Greater than the position of any delivery in its message."""
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


OF_MESSAGE = ("category", "template", "test", "created_at")
"""The columns of a `DeliveryRow` that its message has."""
_COLUMNS = ", ".join(f"{'m' if name in OF_MESSAGE else 'd'}.{name}" for name in DeliveryRow._fields)


class _Conditions:
    """Conditions of messages and of deliveries."""

    def __init__(self) -> None:
        self.message, self.delivery = Conditions(), Conditions()

    @property
    def values(self) -> dict[str, Any]:
        return {**self.message.values, **self.delivery.values}


def find(
    organization_id: str,
    query: DeliveryFilter,
    *,
    limit: int,
    cursor: Cursor | None = None,
    scan: int = SCAN_LIMIT,
) -> DeliveryPage:
    """Return a page of deliveries: one query, two with a filter that has no index."""
    conditions = _conditions(organization_id, query, cursor)
    border = None
    if query.has_no_index and not query.contact_ids and not query.held:
        border = _border(conditions, scan)
        if border:
            conditions.message.add("m.id >= %(border)s", border=border)
    _skip(conditions, query, cursor)
    text = (
        f"SELECT {_COLUMNS} FROM {_M} m JOIN LATERAL (SELECT * FROM {_D} d "
        f"WHERE {conditions.delivery} OFFSET 0) d ON true "
        f"WHERE {conditions.message} ORDER BY m.id DESC, d.position LIMIT %(limit)s"
    )
    rows = [DeliveryRow(*row) for row in sql.fetch(text, {**conditions.values, "limit": limit + 1})]
    if len(rows) > limit:
        return DeliveryPage(rows[:limit], rows[limit - 1].cursor)
    return DeliveryPage(rows, Cursor(border, LAST_POSITION) if border else None)


def _conditions(organization_id: str, query: DeliveryFilter, cursor: Cursor | None) -> _Conditions:
    """Return the conditions that have an index."""
    of_organization = "organization_id = %(organization)s"
    conditions = _Conditions()
    messages, deliveries = conditions.message, conditions.delivery
    messages.add(f"m.{of_organization}", organization=organization_id)
    deliveries.add(f"{lookups.is_of_message('d', 'm.id')} AND d.{of_organization}")
    if query.message_id:
        messages.add("m.id = %(message)s", message=query.message_id)
    if query.contact_ids:
        # The index of contacts finds the messages, so the others are not read.
        messages.add(
            f"m.id IN (SELECT c.message_id FROM {_D} c WHERE c.{of_organization} "
            f"AND {lookups.is_to_contacts('c', '%(contacts)s::text[]')})",
            contacts=list(query.contact_ids),
        )
        deliveries.add("d.contact_id = ANY(%(contacts)s)")
    if query.held:
        # As an array, so that it reads only these messages, whatever the planner expects.
        messages.add(
            f"m.id = ANY(ARRAY(SELECT h.message_id FROM {_D} h WHERE h.{of_organization} "
            "AND h.status = 'UNKNOWN' AND h.due_at IS NULL))"
        )
        deliveries.add("d.status = 'UNKNOWN' AND d.due_at IS NULL")
    if cursor:
        messages.add("m.id <= %(last)s", last=cursor.message_id)
    if query.since:
        messages.add("m.id >= %(since)s", since=ids.at_least(query.since))
    if query.until:
        messages.add("m.id < %(until)s", until=ids.at_least(query.until))
    return conditions


def _border(conditions: _Conditions, scan: int) -> UUID | None:
    """Return the id of the last message that is scanned; None: all are."""
    rows = sql.fetch(
        f"SELECT m.id FROM {_M} m WHERE {conditions.message} "
        "ORDER BY m.id DESC OFFSET %(skip)s LIMIT 1",
        {**conditions.values, "skip": scan - 1},
    )
    return rows[0][0] if rows else None


def _skip(conditions: _Conditions, query: DeliveryFilter, cursor: Cursor | None) -> None:
    """Add the conditions that have no index."""
    if cursor:
        text = "(m.id < %(last)s OR d.position > %(position)s)"
        conditions.message.add(text, position=cursor.position)
    for column in ("category", "template", "test"):
        if (value := getattr(query, column)) not in (None, ""):
            conditions.message.add(f"m.{column} = %({column})s", **{column: value})
    for column in ("channel", "provider", "reason"):
        if value := getattr(query, column):
            conditions.delivery.add(f"d.{column} = %({column})s", **{column: value})
    if query.statuses:
        conditions.delivery.add("d.status = ANY(%(statuses)s)", statuses=list(query.statuses))
