"""Finding a page of the history: which messages, newest first, and where the next page begins.

By keyset, so that a page costs the same however far back it is. Messages of an organization, and
of one of its contacts, are found by an index; status, channel and category have none. For those a
request looks at so many messages and no more: its page may be short or empty, and its cursor goes
on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from messaging.models import Delivery, Message
from messaging.models.statuses import Status, aggregate
from rme.core import ids

LOOK = 10_000
_M, _D = Message._meta.db_table, Delivery._meta.db_table


@dataclass(frozen=True, slots=True)
class Filter:
    """What a history is asked for. `cursor` is the id of the last message that was looked at."""

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


@dataclass(frozen=True, slots=True)
class _Condition:
    text: str
    values: Sequence[Any]


def find(organization_id: str, wanted: Filter) -> tuple[list[UUID], UUID | None]:
    """Give the ids of a page, and the cursor of the next; None where nothing is left.

    One query; another before it with a filter that has no index.
    """
    # With a contact these are deliveries, of which each message has at most one to a contact.
    key, table = ("message_id", _D) if wanted.contact_id else ("id", _M)
    conditions = _by_index(organization_id, key, wanted)
    border = None
    if wanted.has_no_index:
        looked_at = _ids(key, table, conditions, offset=LOOK - 1, limit=1)
        border = looked_at[0] if looked_at else None
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


def _by_index(organization_id: str, key: str, wanted: Filter) -> list[_Condition]:
    conditions = [_Condition("m.organization_id = %s", [organization_id])]
    if wanted.contact_id:
        conditions.append(_Condition("m.contact_id = %s", [wanted.contact_id]))
    if wanted.cursor:
        conditions.append(_Condition(f"m.{key} < %s", [wanted.cursor]))
    if wanted.since:
        conditions.append(_Condition(f"m.{key} >= %s", [ids.at_least(wanted.since)]))
    if wanted.until:
        conditions.append(_Condition(f"m.{key} < %s", [ids.at_least(wanted.until)]))
    return conditions


def _without_index(key: str, wanted: Filter, border: UUID | None) -> list[_Condition]:
    """Write what must hold of each message down to the last that is looked at."""
    conditions = []
    if border:
        conditions.append(_Condition(f"m.{key} >= %s", [border]))
    if wanted.category:
        conditions.append(_Condition("m.category = %s", [wanted.category]))
    if holds := _of_deliveries(wanted):
        # No bound of `d.id`, though it would spare partitions: while the planner takes one for
        # small, it may read that range by the primary key, and for each message again.
        conditions.append(
            _Condition(
                f"(SELECT {' AND '.join(c.text for c in holds)} FROM {_D} d "
                f"WHERE d.message_id = m.{key})",
                [value for c in holds for value in c.values],
            )
        )
    return conditions


def _of_deliveries(wanted: Filter) -> list[_Condition]:
    """Write what must hold of a message's deliveries together: the rule of `states.aggregate`."""
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
