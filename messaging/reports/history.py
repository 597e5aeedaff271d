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
from uuid import UUID

from django.db import connection

from messaging.models import Delivery, Message, delivery_lookup
from messaging.models.statuses import Status, aggregate
from rme.core import ids

SCAN_LIMIT = 10_000
"""The most messages scanned by one request with a filter that has no index."""
_M, _D = Message._meta.db_table, Delivery._meta.db_table
_TO_CONTACT = delivery_lookup.is_to_contact("m", "%s")


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

    @property
    def has_no_index(self) -> bool:
        return bool(self.status or self.channel or self.category)

    def matches(self, message: Message, deliveries: Sequence[Delivery]) -> bool:
        """Return what the conditions without an index say of a message that is not in a table."""
        return (
            (not self.category or message.category == self.category)
            and (not self.channel or any(row.channel == self.channel for row in deliveries))
            and (not self.status or aggregate(row.status for row in deliveries) == self.status)
        )


@dataclass(frozen=True, slots=True)
class _Condition:
    """An SQL condition and the values of its parameters."""

    text: str
    values: Sequence[str | datetime | UUID | list[Status]]


def find(organization_id: str, wanted: HistoryFilter) -> tuple[list[UUID], UUID | None]:
    """Return the ids of a page, and the cursor of the next page; None after the last.

    One query, and another one before it with a filter that has no index.
    """
    # With a contact the rows are deliveries: a message has at most one to each contact.
    key, table = ("message_id", _D) if wanted.contact_id else ("id", _M)
    conditions = _by_index(organization_id, key, wanted)
    border = None
    if wanted.has_no_index:
        last_scanned = _ids(key, table, conditions, offset=SCAN_LIMIT - 1, limit=1)
        border = last_scanned[0] if last_scanned else None
        conditions += _without_index(key, wanted, border)
    found = _ids(key, table, conditions, offset=0, limit=wanted.limit + 1)
    if len(found) > wanted.limit:
        return found[:-1], found[-2]
    return found, border


def _ids(
    key: str, table: str, conditions: Sequence[_Condition], *, offset: int, limit: int
) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT m.{key} FROM {table} m WHERE {' AND '.join(c.text for c in conditions)} "
            f"ORDER BY m.{key} DESC OFFSET %s LIMIT %s",
            [*(value for c in conditions for value in c.values), offset, limit],
        )
        return [identifier for (identifier,) in cursor.fetchall()]


def _by_index(organization_id: str, key: str, wanted: HistoryFilter) -> list[_Condition]:
    conditions = [_Condition("m.organization_id = %s", [organization_id])]
    if wanted.contact_id:
        conditions.append(_Condition(_TO_CONTACT, [wanted.contact_id] * 2))
    if wanted.cursor:
        conditions.append(_Condition(f"m.{key} < %s", [wanted.cursor]))
    if wanted.since:
        conditions.append(_Condition(f"m.{key} >= %s", [ids.at_least(wanted.since)]))
    if wanted.until:
        conditions.append(_Condition(f"m.{key} < %s", [ids.at_least(wanted.until)]))
    return conditions


def _without_index(key: str, wanted: HistoryFilter, border: UUID | None) -> list[_Condition]:
    """Return the conditions without an index, down to the last message that is scanned."""
    conditions = []
    if border:
        conditions.append(_Condition(f"m.{key} >= %s", [border]))
    if wanted.category:
        conditions.append(_Condition("m.category = %s", [wanted.category]))
    if holds := _of_deliveries(wanted):
        # No bound of `d.id`, although it would spare partitions: if the planner takes one for
        # small, it may scan that range by the primary key for each message again.
        conditions.append(
            _Condition(
                f"(SELECT {' AND '.join(c.text for c in holds)} FROM {_D} d "
                f"WHERE {delivery_lookup.is_of_message('d', f'm.{key}')})",
                [value for c in holds for value in c.values],
            )
        )
    return conditions


def _of_deliveries(wanted: HistoryFilter) -> list[_Condition]:
    """Return what must hold of a message's deliveries: the rule of `statuses.aggregate` in SQL."""
    holds = []
    if wanted.channel:
        holds.append(_Condition("bool_or(d.channel = %s)", [wanted.channel]))
    if wanted.status:
        status = Status(wanted.status)
        over = [other for other in Status if aggregate([other, status]) != status]
        some = [status]
        if status is Status.SENDING:  # ACCEPTED counts as it where it is not alone
            some.append(Status.ACCEPTED)
            holds.append(_Condition("bool_or(d.status <> 'ACCEPTED')", []))
        holds.append(_Condition("bool_or(d.status = ANY(%s))", [some]))
        holds.append(_Condition("NOT bool_or(d.status = ANY(%s))", [over]))
    return holds
