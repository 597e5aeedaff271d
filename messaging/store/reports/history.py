"""The history's query: the ids of a page of messages, newest first, and the next page's start.

Paging is by keyset, so a page costs the same however far back it is. The messages of an
organization, and those to one contact, are found by an index; status, channel and category have
none. With these filters a request scans a limited number of messages: its page may be short or
empty, and its cursor continues behind them.

The statement is built as text, because its planner traps (see below) depend on its exact form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from messaging.domain.statuses import Status, aggregate
from messaging.models import Delivery, Message
from messaging.store import lookups
from rme.core import ids
from rme.core.db import sql

SCAN_LIMIT = 10_000
"""The most messages scanned by one request with a filter that has no index."""
_M, _D = Message._meta.db_table, Delivery._meta.db_table


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """The filters of a history. `cursor` is the id of the last message that was scanned."""

    contact_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    status: str | None = None
    channel: str | None = None
    category: str | None = None
    limit: int = 50
    cursor: UUID | None = None
    test: bool = False
    """Whether to return TEST messages only."""

    @property
    def has_no_index(self) -> bool:
        return bool(self.status or self.channel or self.category or self.test)

    def matches(self, message: Message, deliveries: Sequence[Delivery]) -> bool:
        """Return what the conditions without an index say of a message that is not in a table."""
        return (
            (message.test or not self.test)
            and (not self.category or message.category == self.category)
            and (not self.channel or any(row.channel == self.channel for row in deliveries))
            and (not self.status or aggregate(row.status for row in deliveries) == self.status)
        )


class Conditions:
    """Conditions of SQL, and the values of their named parameters."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.values: dict[str, Any] = {}

    def __str__(self) -> str:
        return " AND ".join(self.texts)

    def add(self, text: str, **values: Any) -> None:
        self.texts.append(text)
        self.values |= values


def find(organization_id: str, query: HistoryFilter) -> tuple[list[UUID], UUID | None]:
    """Return the ids of a page, and the cursor of the next page; None after the last.

    One query, and another one before it with a filter that has no index.
    """
    # With a contact the rows are deliveries: a message has at most one to each contact.
    key, table = ("message_id", _D) if query.contact_id else ("id", _M)
    conditions = _by_index(organization_id, key, query)
    border = None
    if query.has_no_index:
        last_scanned = _ids(key, table, conditions, offset=SCAN_LIMIT - 1, limit=1)
        border = last_scanned[0] if last_scanned else None
        _add_others(conditions, key, query, border)
    message_ids = _ids(key, table, conditions, offset=0, limit=query.limit + 1)
    if len(message_ids) > query.limit:
        return message_ids[:-1], message_ids[-2]
    return message_ids, border


def _ids(key: str, table: str, conditions: Conditions, *, offset: int, limit: int) -> list[UUID]:
    rows = sql.fetch(
        f"SELECT m.{key} FROM {table} m WHERE {conditions} "
        f"ORDER BY m.{key} DESC OFFSET %(offset)s LIMIT %(limit)s",
        {**conditions.values, "offset": offset, "limit": limit},
    )
    return [identifier for (identifier,) in rows]


def _by_index(organization_id: str, key: str, query: HistoryFilter) -> Conditions:
    conditions = Conditions()
    conditions.add("m.organization_id = %(organization)s", organization=organization_id)
    if query.contact_id:
        conditions.add(lookups.is_to_contact("m", "%(contact)s"), contact=query.contact_id)
    if query.cursor:
        conditions.add(f"m.{key} < %(cursor)s", cursor=query.cursor)
    if query.since:
        conditions.add(f"m.{key} >= %(since)s", since=ids.at_least(query.since))
    if query.until:
        conditions.add(f"m.{key} < %(until)s", until=ids.at_least(query.until))
    return conditions


def _add_others(
    conditions: Conditions, key: str, query: HistoryFilter, border: UUID | None
) -> None:
    """Add the conditions without an index, down to the last message that is scanned."""
    if border:
        conditions.add(f"m.{key} >= %(border)s", border=border)
    if query.category:
        conditions.add("m.category = %(category)s", category=query.category)
    if query.test:
        conditions.add("m.test")
    of_deliveries = _of_deliveries(query)
    if of_deliveries.texts:
        # No bound of `d.id`, although it would spare partitions: if the planner takes one for
        # small, it may scan that range by the primary key for each message again.
        conditions.add(
            f"(SELECT {of_deliveries} FROM {_D} d WHERE {lookups.is_of_message('d', f'm.{key}')})",
            **of_deliveries.values,
        )


def _of_deliveries(query: HistoryFilter) -> Conditions:
    """Return what must hold of a message's deliveries: the rule of `statuses.aggregate` in SQL."""
    conditions = Conditions()
    if query.channel:
        conditions.add("bool_or(d.channel = %(channel)s)", channel=query.channel)
    if query.status:
        status = Status(query.status)
        over = [candidate for candidate in Status if aggregate([candidate, status]) != status]
        same_statuses = [status]
        if status is Status.SENDING:  # ACCEPTED counts as it where it is not alone
            same_statuses.append(Status.ACCEPTED)
            conditions.add("bool_or(d.status <> 'ACCEPTED')")
        conditions.add("bool_or(d.status = ANY(%(statuses)s))", statuses=same_statuses)
        conditions.add("NOT bool_or(d.status = ANY(%(over)s))", over=over)
    return conditions
