"""Erasure of what messages hold of a person.

SQL, because each statement changes rows of several partitioned tables by a join, and JSON within
them.
"""

from typing import Any

from django.db import connection

from messaging.models import (
    Attempt,
    Delivery,
    Event,
    Message,
    MessageContent,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.store import event_view, lookups

# What the statements below name by their keys, so that none of them joins partitioned tables:
# docs/architecture.md, "Locks and pruning".
# Plan: delivery_by_contact in all partitions, then the deliveries of each message by their keys.
# Run by: erase_messages, for consent.erasure
DELIVERIES_OF_CONTACT = f"""SELECT d.id, d.message_id, NOT EXISTS (
    SELECT FROM {Delivery._meta.db_table} other
    WHERE {lookups.is_of_message("other", "d.message_id")}
    AND other.contact_id <> d.contact_id)
  FROM {Delivery._meta.db_table} d WHERE d.organization_id = %(organization)s
  AND {lookups.is_to_contact("d", "%(contact)s")} AND d.status <> 'SENDING'"""
_EVENTS = event_view.select(
    "stored.message_id = ANY(%(messages)s) AND stored.delivery_id = ANY(%(deliveries)s)",
    "accepted.id = ANY(%(deliveries)s)",
    "sent.delivery_id = ANY(%(deliveries)s)",
)

# Plan: primary keys; attempt_of_delivery, event_of_message, notice_once and notice_contact.
# Run by: erase_messages, for consent.erasure
ERASE = {
    # messages to this person alone: everything
    "contents": f"""UPDATE {MessageContent._meta.db_table} SET body = '{{}}'
      WHERE id = ANY(%(sole_messages)s) AND body <> '{{}}'""",
    "metadata": f"""UPDATE {Message._meta.db_table} SET metadata = NULL
      WHERE id = ANY(%(sole_messages)s) AND metadata IS NOT NULL""",
    # messages to several: this person's variables
    "variables": f"""UPDATE {MessageContent._meta.db_table}
      SET body = jsonb_set(body, '{{recipients}}', (body -> 'recipients') - %(recipients)s::text[])
      WHERE id = ANY(%(messages)s) AND (body -> 'recipients') ?| %(recipients)s::text[]""",
    "attempts": f"""UPDATE {Attempt._meta.db_table} SET reason = NULL
      WHERE delivery_id = ANY(%(deliveries)s) AND reason IS NOT NULL""",
    "events": f"""UPDATE {Event._meta.db_table} SET detail = NULL
      WHERE message_id = ANY(%(messages)s) AND delivery_id = ANY(%(deliveries)s)
      AND detail IS NOT NULL""",
    # webhook deliveries, done and waiting: the payloads and the answers may name the person
    "webhook_deliveries": f"""DELETE FROM {WebhookDelivery._meta.db_table} n
      USING {WebhookEndpoint._meta.db_table} w
      WHERE w.organization_id = %(organization)s AND n.endpoint_id = w.id
      AND n.event_id = ANY(%(events)s)""",
    # and those of the person's consent, suppressions and devices
    "changes": f"""DELETE FROM {WebhookDelivery._meta.db_table} n
      USING {WebhookEndpoint._meta.db_table} w
      WHERE w.organization_id = %(organization)s AND n.endpoint_id = w.id
      AND n.data IS NOT NULL AND n.data ->> 'contactId' = %(contact)s""",
    # without `due_at` a sent delivery does not fall back to another channel
    "deliveries": f"""UPDATE {Delivery._meta.db_table}
      SET address = NULL, detail = NULL, trace = NULL, due_at = NULL
      WHERE id = ANY(%(deliveries)s) AND status <> 'SENDING'
      AND NOT (address IS NULL AND detail IS NULL AND trace IS NULL AND due_at IS NULL)""",
}
"""Statements that erase message data, by the name of the count that they report.

A content is emptied and not deleted, since claims join it.
"""


def erase_messages(organization_id: str, contact_id: str) -> dict[str, int]:
    """Erase what messages hold of a person; return the number of rows by kind.

    Deliveries that a worker is sending are left out.
    """
    values: dict[str, Any] = {"organization": organization_id, "contact": contact_id}
    counts = {}
    with connection.cursor() as cursor:
        cursor.execute(DELIVERIES_OF_CONTACT, values)
        rows = cursor.fetchall()
        values |= {
            "deliveries": [delivery_id for delivery_id, _, _ in rows],
            "recipients": [str(delivery_id) for delivery_id, _, _ in rows],
            "messages": list({message_id for _, message_id, _ in rows}),
            "sole_messages": list({message_id for _, message_id, is_sole in rows if is_sole}),
        }
        cursor.execute(f"SELECT id FROM {_EVENTS} e", values)
        values["events"] = [event_id for (event_id,) in cursor.fetchall()]
        for name, statement in ERASE.items():
            cursor.execute(statement, values)
            counts[name] = cursor.rowcount
    return counts
