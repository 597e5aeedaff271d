"""Find deliveries by their message or by their contact; everyone who does so starts here.

- The first delivery of a message has the message's id, so the primary key finds it. Those of other
  recipients, and all that a former release wrote, are in the index `delivery_of_other`, which has
  nothing of a message to one person. `message_id` alone has no index.
- A contact's deliveries are in an index by the hash of the contact's id, `delivery_by_contact`. It
  is a third as large as one by the organization and the id, and each update of a delivery adds to
  it. Other contacts may have the same hash, so the id is compared too.
"""

from collections.abc import Collection
from uuid import UUID

from django.db.models import OuterRef, Q, Value
from django.db.models.lookups import Exact

from messaging.models.delivery_indexes import OTHER, Hash


def of_message(message_id: UUID | str | OuterRef) -> Q:
    """Return the condition of the deliveries of a message."""
    return Q(id=message_id) | Q(OTHER, message_id=message_id)


def of_messages(message_ids: Collection[UUID]) -> Q:
    """Return the condition of the deliveries of several messages."""
    return Q(id__in=message_ids) | Q(OTHER, message_id__in=message_ids)


def of_contact(contact_id: str) -> Q:
    """Return the condition of the deliveries to a contact, of all organizations."""
    return Q(Exact(Hash("contact_id"), Hash(Value(contact_id))), contact_id=contact_id)


def is_of_message(delivery: str, message_id: str) -> str:
    """Return the condition in SQL that a delivery, by its alias, is one of a message.

    `message_id` is an expression, or `ANY(…)` of several ids.
    """
    return (
        f"({delivery}.id = {message_id} OR {delivery}.message_id = {message_id} "
        f"AND NOT ({delivery}.id = {delivery}.message_id))"
    )


def is_to_contact(delivery: str, contact_id: str) -> str:
    """Return the condition in SQL that a delivery, by its alias, is to a contact.

    `contact_id` is an expression.
    """
    return (
        f"hashtextextended({delivery}.contact_id, 0) = hashtextextended({contact_id}, 0) "
        f"AND {delivery}.contact_id = {contact_id}"
    )


def is_to_contacts(delivery: str, contact_ids: str) -> str:
    """Return the condition in SQL that a delivery, by its alias, is to one of several contacts.

    `contact_ids` is an expression, an array of texts.
    """
    return (
        f"hashtextextended({delivery}.contact_id, 0) = "
        f"ANY(ARRAY(SELECT hashtextextended(one, 0) FROM unnest({contact_ids}) one)) "
        f"AND {delivery}.contact_id = ANY({contact_ids})"
    )
