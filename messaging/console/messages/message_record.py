"""A message and one of its recipients as they are stored, in JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from messaging import links
from messaging.console.access import Viewer
from messaging.models import Delivery, Message
from messaging.reports.queries import MessageDetail
from messaging.store import attempts, encodings
from messaging.store.reports.deliveries import DeliveryRow

ATTEMPTS = 500
"""At most this many attempts of a delivery are shown."""
_ATTEMPT = (
    *("started_at", "channel", "provider", "device_id", "outcome", "reason"),
    *("provider_id", "latency_ms", "fence"),
)


def of(viewer: Viewer, detail: MessageDetail, row: DeliveryRow) -> str:
    """Return the record of a recipient; four statements, none of an archived message's rows.

    Metadata and content need SEE_CONTENTS. Without SEE_ADDRESSES all addresses are masked.
    """
    message = asdict(detail.message)
    message.pop("recipients")
    values: dict[str, Any] = {
        "message": {**message, **_message(row)},
        "delivery": {**row._asdict(), **_delivery(row)},
        "attempts": _attempts(row),
        "events": [asdict(each) for each in detail.events if each.contact_id == row.contact_id],
        "trace": [
            asdict(step)
            for recipient in detail.trace or ()
            if recipient.contact_id == row.contact_id
            for step in recipient.steps
        ],
    }
    if viewer.sees_contents:
        bodies = encodings.contents(viewer.organization_id, [row.message_id])
        values["content"] = links.preview_values(bodies.get(row.message_id))
    else:
        del values["message"]["metadata"]
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z
    text = orjson.dumps(values, option=options, default=str).decode()
    return viewer.without(text, row.address)


def _message(row: DeliveryRow) -> Mapping[str, object]:
    """Return what only the message's own row has."""
    message = Message.objects.filter(pk=row.message_id).first()
    if message is None:
        return {}
    return {
        "channels": encodings.channels_of(message, row.channel),
        "strategy": encodings.strategy_of(message),
        "fallback_after": message.fallback_after,
        "language": message.language,
    }


def _delivery(row: DeliveryRow) -> Mapping[str, object]:
    names = ("tries", "fence")
    return Delivery.objects.filter(pk=row.id).values(*names).first() or {}


def _attempts(row: DeliveryRow) -> list[dict[str, object]]:
    rows = attempts.read([row.id])[:ATTEMPTS]
    return [{name: getattr(attempt, name) for name in _ATTEMPT} for attempt in rows]
