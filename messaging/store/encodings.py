"""Encodings of rows that save bytes: each is written and read here, and everyone else sees values.

| column | stored | means |
|---|---|---|
| `Attempt.message_id` | null | the delivery's id: that of a message's first recipient |
| `Attempt.provider_id` | `@…` | the delivery's id stands before the `@`, as in a Message-ID |
| `Attempt.provider_id` | `@@…` | the id itself begins with one `@` less |
| `Message.channels` | null | one channel, that of its deliveries |
| `Message.strategy` | null | the usual one, FIRST_REACHABLE |
| `Delivery.channels` | null | no channel to fall back to |
| `MessageContent.body["sender"]` | a list | domain, local part and name, in this order |
"""

from collections.abc import Collection, Sequence
from typing import Any, cast
from uuid import UUID

from messaging.domain.contents import TRACEPARENT, ContentBody
from messaging.models import Attempt, Message, MessageContent
from rme.core.telemetry import tracing

USUAL_STRATEGY = "FIRST_REACHABLE"
FALLBACK_SECONDS = 300
"""How long a FIRST_DELIVERED message that names no time waits for a confirmation."""


DETAIL_LIMIT = 500
"""The longest detail of a delivery."""


def storable(text: str) -> str:
    """Return a text from outside as PostgreSQL takes it: without NUL and lone surrogates."""
    if text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


# --- attempts -----------------------------------------------------------------------------------


def attempt_message_id(delivery_id: str, message_id: str) -> str | None:
    """Return the id of its message as an attempt stores it."""
    return message_id if message_id != delivery_id else None


def message_id_of(attempt: Attempt) -> UUID:
    """Return the id of an attempt's message."""
    return attempt.message_id or attempt.delivery_id


def message_of_attempt(attempt: str) -> str:
    """Return the SQL of `message_id_of` for an attempt, by its alias."""
    return f"coalesce({attempt}.message_id, {attempt}.delivery_id)"


def short_provider_id(provider_id: str, delivery_id: str) -> str:
    """Return a provider's id as an attempt stores it.

    The Message-ID of a mail is the delivery's id, `@` and a domain: from the `@` on. An id that has
    nothing before an `@` gets another one in front.
    """
    if provider_id.startswith(delivery_id):
        suffix = provider_id[len(delivery_id) :]
        if suffix[:1] == "@" and suffix[:2] != "@@":
            return suffix
    return f"@{provider_id}" if provider_id[:1] == "@" else provider_id


def provider_id_of(attempt: Attempt) -> str | None:
    """Return the provider's id for the message of an attempt."""
    provider_id = attempt.provider_id
    if not provider_id or not provider_id.startswith("@"):
        return provider_id
    return (
        provider_id[1:] if provider_id.startswith("@@") else f"{attempt.delivery_id}{provider_id}"
    )


def provider_id_of_attempt(attempt: str) -> str:
    """Return the SQL of `provider_id_of` for an attempt, by its alias."""
    column = f"{attempt}.provider_id"
    return (
        f"CASE WHEN starts_with({column}, '@@') THEN substr({column}, 2) "
        f"WHEN starts_with({column}, '@') THEN {attempt}.delivery_id || {column} "
        f"ELSE {column} END"
    )


# --- messages and deliveries --------------------------------------------------------------------


def channels_of(message: Message, channel: str) -> Sequence[str]:
    """Return the channels to choose from of a message that has a delivery on this channel."""
    return message.channels or [channel]


def strategy_of(message: Message) -> str:
    """Return a message's strategy."""
    return message.strategy or USUAL_STRATEGY


NO_CHANNELS = "nullif({}, '{{}}')"
"""The SQL of remaining channels as a delivery stores them."""


def remaining_channels(delivery: str) -> str:
    """Return the SQL of the channels that a delivery, by its alias, may fall back to."""
    return f"coalesce({delivery}.channels, '{{}}')"


def fallback_seconds(message: str) -> str:
    """Return the SQL of the seconds that a message, by its alias, waits for a confirmation."""
    return f"coalesce({message}.fallback_after, {FALLBACK_SECONDS})"


# --- contents -----------------------------------------------------------------------------------


def stored_body(body: ContentBody) -> dict[str, Any]:
    """Return the body of a content as it is stored."""
    sender = body["sender"]
    return {**body, "sender": [sender["domain"], sender["local_part"], sender["name"]]}


def trace_context(message_id: str) -> str:
    """Return the SQL of a message's traceparent, by a column with its id: null where tracing is
    off, so that no content is read for it.
    """
    if tracing.tracer() is None:
        return "NULL::text"
    content = MessageContent._meta.db_table
    return f"(SELECT c.body->>'{TRACEPARENT}' FROM {content} c WHERE c.id = {message_id})"


def body_of(columns: dict[str, Any]) -> ContentBody:
    """Return the body of a content, changed in place. Contents of former releases have a sender
    with the names of its values.
    """
    body = cast(ContentBody, columns)
    sender = columns.get("sender")
    if isinstance(sender, list):
        domain, local_part, name = sender
        body["sender"] = {"domain": domain, "local_part": local_part, "name": name or ""}
    return body


def contents(organization_id: str, message_ids: Collection[UUID]) -> dict[UUID, ContentBody]:
    """Return the contents of messages that still have one; one query."""
    rows = MessageContent.objects.filter(pk__in=message_ids, organization_id=organization_id)
    return {message_id: body_of(body) for message_id, body in rows.values_list("pk", "body")}
