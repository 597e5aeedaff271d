"""The ONE place where events are written: together with what endpoints are to be told of them."""

from collections.abc import Sequence

from django.db import models

from messaging.models import Event, WebhookDelivery
from messaging.webhooks import endpoints
from rme.core.db import sql

Tables = dict[type[models.Model], Sequence[sql.Row]]


def write_events(rows: Sequence[sql.Row]) -> None:
    """Write events by one statement, and who is to be told of them."""
    sql.insert(with_notices(rows))


def of_moved(rows: Sequence[sql.Row]) -> sql.Steps:
    """Give the steps that write events of those deliveries that the step `moved` returned."""
    return {
        "events": sql.insert_part(
            Event, rows, "WHERE delivery_id = ANY(ARRAY(SELECT id FROM moved)) RETURNING id"
        ),
        "notices": sql.insert_part(
            WebhookDelivery, _notices(rows), "WHERE event_id = ANY(ARRAY(SELECT id FROM events))"
        ),
    }


def with_notices(rows: Sequence[sql.Row]) -> Tables:
    """Give what is to be written of events, for `sql.insert`."""
    return {Event: rows, WebhookDelivery: _notices(rows)}


def _notices(rows: Sequence[sql.Row]) -> list[sql.Row]:
    subscribed = endpoints.subscriptions({row["organization_id"] for row in rows}) if rows else {}
    if not any(subscribed.values()):
        return []
    return [
        {
            "organization_id": row["organization_id"],
            "endpoint_id": each.endpoint_id,
            "event_id": row["id"],
            "type": kind,
        }
        for row in rows
        for each in subscribed[row["organization_id"]]
        if each.wants(kind := f"message.{row['type']}")
    ]
