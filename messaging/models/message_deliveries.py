"""Find the deliveries of messages.

The first delivery of a message has the message's id, so the primary key finds it. Those of other
recipients, and all that a former release wrote, are in an index (`delivery_of_other`), which has
nothing of a message to one person. So deliveries are found by both, and only through this module:
`message_id` alone has no index.
"""

from collections.abc import Collection
from uuid import UUID

from django.db.models import F, OuterRef, Q

OTHER = ~Q(id=F("message_id"))
"""Deliveries that do not have their message's id; the condition of the index."""


def of_message(message_id: UUID | str | OuterRef) -> Q:
    """Return the condition of the deliveries of a message."""
    return Q(id=message_id) | Q(OTHER, message_id=message_id)


def of_messages(message_ids: Collection[UUID]) -> Q:
    """Return the condition of the deliveries of several messages."""
    return Q(id__in=message_ids) | Q(OTHER, message_id__in=message_ids)


def matches(delivery: str, message_id: str) -> str:
    """Return the condition in SQL that a delivery, by its alias, is one of a message.

    `message_id` is an expression, or `ANY(…)` of several ids.
    """
    return (
        f"({delivery}.id = {message_id} OR {delivery}.message_id = {message_id} "
        f"AND NOT ({delivery}.id = {delivery}.message_id))"
    )
