"""What time brings: scheduled sends that are due, leases that ended, unknown outcomes to decide.

Any number of processes may run this at once: rows are taken with SKIP LOCKED and moved by
compare-and-set.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from messaging.delivery import fairness
from messaging.models import Attempt, Delivery, SendingRules
from messaging.models.statuses import TRANSITIONS, EventType, Status
from messaging.policy import organization_policy
from messaging.webhooks.events import write_events
from rme.core import ids
from rme.core.channels import Channel
from rme.core.db import sql
from rme.core.db.transitions import advance

BATCH = 1000

_D = Delivery._meta.db_table

ORGANIZATIONS = 20
"""Of so many a batch releases, chosen at random: one with a million due holds up no other."""

_COLUMNS = """d.id, d.organization_id, d.message_id, d.category, d.priority, d.channel,
  d.scheduled_for, d.due_at, d.fence, d.expires_at, d.channels, statement_timestamp()"""

_DUE = f"""
SELECT {_COLUMNS} FROM {_D} d
WHERE d.status = %s AND d.due_at <= statement_timestamp() AND d.due_at IS NOT NULL
  AND NOT (d.status IN ('ACCEPTED', 'SCHEDULED'))
ORDER BY d.due_at LIMIT %s FOR UPDATE SKIP LOCKED
"""

_SEARCH = fairness.Search(Status.SCHEDULED, ORGANIZATIONS, by_channel=False)

_RELEASED = f"""
SELECT {_COLUMNS} FROM json_to_recordset(%s) chosen(priority smallint, organization_id varchar),
LATERAL (
  SELECT * FROM {_D} WHERE status = 'SCHEDULED' AND priority = chosen.priority
    AND organization_id = chosen.organization_id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
) d
"""

# The attempts without an outcome, of the claims (delivery and fence) that made them.
_OPEN = f"""
SELECT a.delivery_id FROM unnest(%s::uuid[], %s::int[]) held(id, fence)
JOIN {Attempt._meta.db_table} a ON {sql.by_key("a.delivery_id", "held.id")} AND a.fence = held.fence
WHERE a.outcome IS NULL
"""


def release(batch: int = BATCH) -> int:
    """Move scheduled deliveries that are due to ACCEPTED; give how many were looked at.

    TRANSACTIONAL first, and fair between organizations: each that is chosen has the same share of
    the batch. One found later than the grace allows is of no use any more, unless somebody waits
    for it.
    """
    with transaction.atomic():
        due = _released(batch)
        grace = _graces({row["organization_id"] for row in due if row["priority"] > 0})
        late = [
            row
            for row in due
            if row["priority"] > 0
            and row["now"] - row["scheduled_for"] > grace[row["organization_id"]]
        ]
        gone = {row["id"] for row in late}
        rows = [
            {
                "id": row["id"],
                "status": Status.EXPIRED if row["id"] in gone else Status.ACCEPTED,
                "due_at": None if row["id"] in gone else row["due_at"],
                "reason": "EXPIRED" if row["id"] in gone else None,
            }
            for row in due
        ]
        advance(Delivery, TRANSITIONS, rows)
        write_events([_event(row, EventType.EXPIRED) for row in late])
    return len(due)


def _graces(organization_ids: set[str]) -> dict[str, timedelta]:
    """Give how late each organization lets a scheduled send be; one query for all."""
    found = dict(
        SendingRules.objects.filter(organization_id__in=organization_ids).values_list(
            "organization_id", "schedule_grace"
        )
    )
    usual = SendingRules().schedule_grace
    return {each: timedelta(seconds=found.get(each, usual)) for each in organization_ids}


def reclaim() -> int:
    """Take back deliveries whose lease has ended: their worker is thought dead.

    Where an attempt was written and has no outcome, it may have left: UNKNOWN, to be decided.
    Otherwise nothing left, and the delivery is ready again at once.
    """
    with transaction.atomic():
        due = _due(Status.SENDING)
        if not due:
            return 0
        with connection.cursor() as cursor:
            cursor.execute(_OPEN, [[row["id"] for row in due], [row["fence"] for row in due]])
            in_doubt = {delivery_id for (delivery_id,) in cursor.fetchall()}
        wait = timedelta(seconds=settings.UNKNOWN_SECONDS)
        advance(
            Delivery,
            TRANSITIONS,
            [
                {
                    "id": row["id"],
                    "fence": row["fence"],
                    "status": Status.UNKNOWN if row["id"] in in_doubt else Status.ACCEPTED,
                    "due_at": row["now"] + wait if row["id"] in in_doubt else row["now"],
                    "reason": "UNKNOWN_OUTCOME" if row["id"] in in_doubt else None,
                }
                for row in due
            ],
        )
    return len(due)


_IN_DOUBT = f"""
SELECT d.id, count(DISTINCT a.fence), max(a.started_at)
FROM {_D} d JOIN {Attempt._meta.db_table} a ON a.delivery_id = d.id AND a.channel = d.channel
WHERE d.id = ANY(%s) AND (a.outcome IS NULL OR a.outcome = 'Unknown') GROUP BY d.id
"""


def resolve_unknown() -> int:
    """Decide unknown outcomes for which no receipt came: send again, or hold.

    The category says which. What was sent again as often as `UNKNOWN_BACKOFF_SECONDS` has waits is
    held all the same: a provider that takes messages and never says so would get copies for ever.
    A delivery waits as UNKNOWN, where a receipt still ends it.
    """
    with transaction.atomic():
        due = _due(Status.UNKNOWN)
        doubts = _doubts(due)
        waits = [timedelta(seconds=each) for each in settings.UNKNOWN_BACKOFF_SECONDS]
        again: list[sql.Row] = []
        parked: list[sql.Row] = []
        events: list[sql.Row] = []
        for row in due:
            rules = organization_policy.of(row["organization_id"]).rules(row["category"])
            resend = rules.resend_unknown or row["channel"] == Channel.PUSH
            times, last = doubts.get(row["id"], (1, row["now"]))
            if not resend or times > len(waits):
                parked.append({"id": row["id"], "due_at": None})
                continue
            wait = waits[times - 1]
            ready = last + timedelta(seconds=settings.UNKNOWN_SECONDS) + wait
            if wait and ready > row["now"]:
                parked.append({"id": row["id"], "due_at": ready})
                continue
            again.append(row)
            if row["expires_at"] > row["now"]:
                told = f"resent: outcome unknown ({times} of {len(waits)})"
                detail = {"decision": "RESEND", "reason": told}
                events.append({**_event(row, EventType.DEFERRED), "detail": detail})
        late = {row["id"] for row in again if row["expires_at"] <= row["now"]}
        advance(
            Delivery,
            TRANSITIONS,
            [
                {
                    "id": row["id"],
                    "status": Status.FAILED if row["id"] in late else Status.ACCEPTED,
                    "due_at": None if row["id"] in late else row["now"],
                    "reason": "PROVIDER_ERROR" if row["id"] in late else None,
                }
                for row in again
            ],
        )
        events += [_event(row, EventType.FAILED) for row in again if row["id"] in late]
        write_events(events)
        sql.update(Delivery, parked)
    return len(due)


def _doubts(rows: list[dict[str, Any]]) -> dict[UUID, tuple[int, datetime]]:
    """Return how often each delivery was sent with an unknown outcome, and when last."""
    if not rows:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_IN_DOUBT, [[row["id"] for row in rows]])
        return {key: (times, last) for key, times, last in cursor.fetchall()}


def fall_back() -> int:
    """Give the next channel its turn where a delivery was not confirmed in time."""
    with transaction.atomic():
        due = _due(Status.SENT)
        moved = advance(
            Delivery,
            TRANSITIONS,
            [
                {
                    "id": row["id"],
                    "status": Status.ACCEPTED,
                    "channel": row["channels"][0],
                    "channels": row["channels"][1:],
                    "address": None,
                    "due_at": row["now"],
                }
                for row in due
            ],
        )
        write_events([_event(row, EventType.FALLBACK) for row in due if row["id"] in moved])
    return len(due)


def waiting_channels() -> list[str]:
    """Return the channels on which something is ready to be sent now."""
    return fairness.waiting_channels()


def _due(status: Status) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql.BY_INDEX)
        cursor.execute(_DUE, [status, BATCH])
        return [dict(zip(_NAMES, row, strict=True)) for row in cursor.fetchall()]


def _released(batch: int) -> list[dict[str, Any]]:
    """Take what is to be released: of a few organizations, as much of each."""
    waiting = _SEARCH.find()
    first = [row for row in waiting if row[0] == waiting[0][0]]
    if not first:
        return []
    chosen = [{"priority": priority, "organization_id": org} for priority, org in first]
    with connection.cursor() as cursor:
        cursor.execute(_RELEASED, [sql.as_json(chosen), batch // len(first)])
        return [dict(zip(_NAMES, row, strict=True)) for row in cursor.fetchall()]


_NAMES = (
    "id",
    "organization_id",
    "message_id",
    "category",
    "priority",
    "channel",
    "scheduled_for",
    "due_at",
    "fence",
    "expires_at",
    "channels",
    "now",
)


def _event(row: sql.Row, kind: EventType) -> sql.Row:
    return {
        "id": ids.new_id(),
        "organization_id": row["organization_id"],
        "message_id": row["message_id"],
        "delivery_id": row["id"],
        "type": kind,
        "at": row["now"],
        "channel": row["channel"],
        "provider": None,
        "detail": None,
    }
