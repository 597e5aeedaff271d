"""Why a message went as it did: the steps of each recipient, in the order in which they came.

What was decided at accept is kept on the delivery, in short form (`messaging.models.decisions`); all
else is told by the attempts and events that there are anyway. A step has `at`, `step`, `channel`
and `result`, and what else is known of:

| step | result | more |
|---|---|---|
| DECISION | CHOSEN, QUIET_HOURS, or the code that spoke against the channel | `entry`, `until` |
| DECISION | SEND_AGAIN, GIVE_UP: a person's, of what was on hold | `detail` |
| DECISION | RESEND: the category's, of an unknown outcome | `detail`: which resend it is |
| ATTEMPT | ACCEPTED, RETRYABLE, REJECTED, GONE, MISCONFIGURED, UNKNOWN; null: no answer yet | `provider`, `providerId`, `detail`, `latencyMs`, `deviceId` |
| GATE | the code by which a gate refused at the moment of sending | `entry` |
| WAIT | PAUSED, PROVIDER, RATE, or the provider's reason | `provider`, `until` |
| FAILOVER, FALLBACK | why the next account, or the next channel, had its turn | `provider`, `entry` |

`entry` is the id of the suppression or consent entry that decided.
"""  # noqa: E501 (a table)

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from messaging.models import Attempt, Delivery, Event
from messaging.models.decisions import CHOSEN, QUIET_HOURS
from messaging.models.statuses import EventType, Status
from rme.core import ids
from rme.core.db.clock import iso

Step = dict[str, Any]

_EVENTS = {
    EventType.BLOCKED: "GATE",
    EventType.DEFERRED: "WAIT",
    EventType.FAILOVER: "FAILOVER",
    EventType.FALLBACK: "FALLBACK",
}
_DELIVERIES = f"""
SELECT id, contact_id, channel, status, waiting, due_at, updated_at, trace
FROM {Delivery._meta.db_table} WHERE organization_id = %s AND message_id = %s ORDER BY position
"""
_ATTEMPTS = f"""
SELECT delivery_id, started_at, channel, provider, outcome, reason, provider_id, latency_ms,
  device_id
FROM {Attempt._meta.db_table} WHERE delivery_id = ANY(%s) ORDER BY id
"""
_HAPPENED = f"""
SELECT delivery_id, at, type, channel, provider, detail
FROM {Event._meta.db_table} WHERE message_id = %s AND id >= %s ORDER BY at, id
"""


def of_message(organization_id: str, message_id: UUID) -> list[dict[str, Any]]:
    """Give each recipient's steps: `[{"contactId", "steps"}]`; three queries."""
    with connection.cursor() as cursor:
        cursor.execute(_DELIVERIES, [organization_id, message_id])
        deliveries = cursor.fetchall()
        steps: dict[UUID, list[tuple[datetime, Step]]] = {row[0]: [] for row in deliveries}
        cursor.execute(_HAPPENED, [message_id, ids.earliest_concurrent(message_id)])
        events = [row for row in cursor.fetchall() if row[0] in steps]
        cursor.execute(_ATTEMPTS, [list(steps)])
        attempts = cursor.fetchall()
    first = {row[0]: row for row in reversed(events)}  # of each delivery: what accept said
    for delivery_id, _, channel, status, waiting, due_at, updated_at, kept in deliveries:
        _, at, _, chosen, _, _ = first[delivery_id]
        given = orjson.loads(kept) if kept else [[chosen or channel, CHOSEN, None]]
        steps[delivery_id] += [(at, each) for each in decisions(at, given)]
        if status == Status.ACCEPTED and waiting:
            wait = {"channel": channel, "result": waiting, "until": iso(due_at)}
            steps[delivery_id].append((updated_at, _step(updated_at, "WAIT", wait)))
    for row in events:
        if row is not first[row[0]]:
            steps[row[0]] += _happened(*row[1:])
    for row in attempts:
        steps[row[0]].append((row[1], _attempt(row)))
    return [
        {"contactId": row[1], "steps": [step for _, step in sorted(steps[row[0]], key=_when)]}
        for row in deliveries
    ]


def decisions(at: datetime, kept: Iterable[Sequence[str | None]]) -> list[Step]:
    """Write out what was decided at accept."""
    return [
        _step(
            at,
            "DECISION",
            {
                "channel": channel,
                "result": result,
                ("until" if result == QUIET_HOURS else "entry"): detail,
            },
        )
        for channel, result, detail in kept
    ]


def _happened(
    at: datetime, kind: str, channel: str | None, provider: str | None, detail: str | None
) -> list[tuple[datetime, Step]]:
    said = orjson.loads(detail) if detail else {}
    if "decision" in said:
        told = {"channel": channel, "result": said["decision"], "detail": said["reason"]}
        return [(at, _step(at, "DECISION", told))]
    if (name := _EVENTS.get(EventType(kind))) is None:
        return []
    more = {"channel": channel, "result": said.get("reason"), "provider": provider}
    return [(at, _step(at, name, {**more, "entry": said.get("entry")}))]


def _attempt(row: Sequence[Any]) -> Step:
    _, at, channel, provider, outcome, reason, provider_id, latency, device = row
    return _step(
        at,
        "ATTEMPT",
        {
            "channel": channel,
            "result": outcome.upper() if outcome else None,
            "provider": provider,
            "providerId": provider_id,
            "detail": reason,
            "latencyMs": latency,
            "deviceId": str(device) if device else None,
        },
    )


def _step(at: datetime, name: str, more: Mapping[str, Any]) -> Step:
    shown = {key: value for key, value in more.items() if value is not None or key == "result"}
    return {"at": iso(at), "step": name, **shown}


def _when(entry: tuple[datetime, Step]) -> datetime:
    return entry[0]
