"""The contents of messages as values."""

from collections.abc import Collection
from uuid import UUID

from messaging.domain.contents import ContentBody
from messaging.models import MessageContent
from messaging.store.encodings import body_of


def read(organization_id: str, message_ids: Collection[UUID]) -> dict[UUID, ContentBody]:
    """Return the contents of messages that still have one; one query."""
    rows = MessageContent.objects.filter(pk__in=message_ids, organization_id=organization_id)
    return {message_id: body_of(body) for message_id, body in rows.values_list("pk", "body")}
