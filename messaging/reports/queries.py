"""Reading messages: one with its events, and the history by keyset."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from messaging.models import Delivery, Event, Message
from messaging.models.statuses import Status, aggregate
from messaging.reports import trace
from messaging.reports.history import Filter, find
from rme.core import errors, ids
from rme.core.db.clock import iso

__all__ = [
    "Filter",
    "cursor_of",
    "detail",
    "history",
    "orjson_value",
    "read_cursor",
    "send_result",
]

_M, _D, _E = (model._meta.db_table for model in (Message, Delivery, Event))

_MESSAGE = """m.id, m.category, m.channels, m.strategy, m.template, m.language, m.metadata, m.test,
  m.created_at"""
_MESSAGE_NAMES = (
    "id",
    "category",
    "channels",
    "strategy",
    "template",
    "language",
    "metadata",
    "test",
    "created_at",
)
_DELIVERY_NAMES = (
    "id",
    "message_id",
    "contact_id",
    "status",
    "channel",
    "provider",
    "reason",
    "detail",
    "waiting",
    "scheduled_for",
)

Row = Mapping[str, Any]


def detail(organization_id: str, message_id: str, *, with_trace: bool = False) -> dict[str, Any]:
    """Give one message with its events; three queries, six with its trace. Raises NotFound."""
    found = ids.parse(message_id)
    messages = _messages(organization_id, [found]) if found else []
    if not messages:
        raise errors.NotFound("There is no such message.")
    deliveries = _deliveries([found])
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.type, e.at, d.contact_id, e.channel, e.provider, e.detail FROM {_E} e "
            f"JOIN {_D} d ON d.id = e.delivery_id "
            "WHERE e.message_id = %s AND e.id >= %s ORDER BY e.at, e.id",
            [found, ids.earliest_concurrent(found) if found else None],
        )
        events = [_event(*row) for row in cursor.fetchall()]
    shown = {**_shown(messages[0], deliveries[found]), "events": events}
    if with_trace and found:
        shown["trace"] = trace.of_message(organization_id, found)
    return shown


def history(organization_id: str, wanted: Filter) -> tuple[list[dict[str, Any]], str | None]:
    """Give a page of messages, newest first, and the cursor of the next.

    Three queries; a fourth with a filter that has no index.
    """
    page, following = find(organization_id, wanted)
    messages = _messages(organization_id, page)
    deliveries = _deliveries(page)
    shown = [_shown(message, deliveries[message["id"]]) for message in messages]
    return shown, cursor_of(following) if following else None


def _messages(organization_id: str, message_ids: Sequence[UUID | None]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_MESSAGE} FROM {_M} m WHERE m.organization_id = %s AND m.id = ANY(%s) "
            "ORDER BY m.id DESC",
            [organization_id, list(message_ids)],
        )
        return [dict(zip(_MESSAGE_NAMES, row, strict=True)) for row in cursor.fetchall()]


def _deliveries(message_ids: Sequence[UUID | None]) -> dict[UUID | None, list[Row]]:
    found: dict[UUID | None, list[Row]] = {identifier: [] for identifier in message_ids}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(_DELIVERY_NAMES)} FROM {_D} WHERE message_id = ANY(%s) "
            "ORDER BY message_id, position",
            [list(message_ids)],
        )
        for row in cursor.fetchall():
            delivery = dict(zip(_DELIVERY_NAMES, row, strict=True))
            found[delivery["message_id"]].append(delivery)
    return found


def _shown(message: Row, deliveries: Sequence[Row]) -> dict[str, Any]:
    first = deliveries[0]
    times = sorted(row["scheduled_for"] for row in deliveries if row["scheduled_for"])
    channels = {row["channel"] for row in deliveries}
    providers = {row["provider"] for row in deliveries}
    template = message["template"]
    return {
        "messageId": str(message["id"]),
        "status": aggregate(row["status"] for row in deliveries),
        "channel": channels.pop() if len(channels) == 1 else None,
        "category": message["category"],
        "template": {"name": template, "language": message["language"]} if template else None,
        "provider": providers.pop() if len(providers) == 1 else None,
        "scheduledFor": iso(times[0]) if times else None,
        "createdAt": iso(message["created_at"]),
        "error": _error(first) if len(deliveries) == 1 else None,
        "metadata": orjson_value(message["metadata"]) or {},
        "test": message["test"],
        "recipients": [_recipient(row) for row in deliveries],
    }


def _recipient(row: Row) -> dict[str, Any]:
    return {
        "contactId": row["contact_id"],
        "status": row["status"],
        "resolvedChannel": row["channel"],
        "provider": row["provider"],
        "scheduledFor": iso(row["scheduled_for"]),
        "waiting": row["waiting"] if row["status"] == Status.ACCEPTED else None,
        "error": _error(row),
    }


_FAILED = {Status.FAILED, Status.BLOCKED, Status.EXPIRED, Status.UNKNOWN}


def _error(row: Row) -> dict[str, str] | None:
    if row["status"] not in _FAILED or not row["reason"]:
        return None
    return {"code": row["reason"], "message": row["detail"] or ""}


def _event(  # noqa: PLR0917 (the columns of its query, in order)
    kind: str,
    at: datetime,
    contact_id: str,
    channel: str | None,
    provider: str | None,
    detail: str | None,
) -> dict[str, Any]:
    event: dict[str, Any] = {"type": kind, "at": iso(at), "contactId": contact_id}
    if channel:
        event["channel"] = channel
    if provider:
        event["provider"] = provider
    if detail:
        event["detail"] = orjson_value(detail)
    return event


def orjson_value(text: str | None) -> Any:
    """Read a JSON column of a raw query, which comes as text."""
    return orjson.loads(text) if text is not None else None


def cursor_of(identifier: UUID) -> str:
    """Write a cursor: opaque to callers, so that it may change."""
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def read_cursor(text: str) -> UUID:
    """Read a cursor that an answer gave. Raises InvalidPayload."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        raise errors.InvalidPayload.at("cursor", "not a cursor of ours") from None


def send_result(organization_id: str, message_id: str, *, request_id: str) -> dict[str, Any]:
    """Give a message in the shape in which sending answered. Raises NotFound."""
    shown = detail(organization_id, message_id)
    result = {
        "messageId": shown["messageId"],
        "status": shown["status"],
        "resolvedChannel": shown["channel"],
        "provider": shown["provider"],
        "scheduledFor": shown["scheduledFor"],
    }
    if len(shown["recipients"]) > 1:
        result["recipients"] = [
            _result_of(row, message_id, request_id) for row in shown["recipients"]
        ]
    return result


def _result_of(row: Row, message_id: str, request_id: str) -> dict[str, Any]:
    """Give a recipient's part of a send result: an error is whole there."""
    told = {name: value for name, value in row.items() if name != "waiting"}
    if row["error"]:
        whole = {"messageId": message_id, "requestId": request_id, "details": []}
        told["error"] = {**row["error"], **whole}
    return told
