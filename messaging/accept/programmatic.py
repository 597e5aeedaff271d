"""Sending from a program in this process, by the same path as a REST call."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from messaging.accept import idempotency
from messaging.accept.acceptance import accept
from messaging.accept.calls import Call, Submission
from messaging.accept.requests import MESSAGE
from messaging.accept.results import Refusal, SendResult, read
from messaging.store.idempotency import StoredAnswer
from rme.core import errors
from rme.core.db.clock import iso
from rme.core.http.parsing import parse, refuse_nul
from rme.tenants import organizations
from rme.tenants.models import Organization
from rme.tenants.oauth.authentication import Caller

PROGRAM = 0
"""The application id and the user id of messages that a program in this process sends."""


@dataclass(frozen=True, slots=True)
class MessageResult:
    """The send result of the REST call for an accepted message."""

    message_id: str
    status: str
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None
    replayed: bool = False


def send_push(
    organization: Organization | str,
    contact_id: str,
    *,
    title: str,
    body: str,
    data: Mapping[str, str] | None = None,
    badge: int | None = None,
    channels: Sequence[str] = ("PUSH",),
    strategy: str = "FIRST_REACHABLE",
    category: str = "TRANSACTIONAL",
    idempotency_key: str | None = None,
) -> MessageResult:
    """Send to one contact, by the same path as REST: gates, routes, fallback and record.

    On SMS the text is `title: body`, on email the title is the subject. Raises the ApiError that
    REST would answer with; its `message_id` names the message if one was stored.
    """
    content = {"title": title, "body": body, "data": data and dict(data), "badge": badge}
    request = {
        "channels": list(channels),
        "strategy": strategy,
        "category": category,
        "to": [{"contactId": contact_id}],
        "content": {name: value for name, value in content.items() if value is not None},
    }
    return send(organization, request, idempotency_key=idempotency_key)


def send(
    organization: Organization | str,
    request: dict[str, Any],
    *,
    idempotency_key: str | None = None,
    user_id: int = PROGRAM,
) -> MessageResult:
    """Send by the body of a REST call, for a person or for none.

    Raises the ApiError that REST would answer with.
    """
    message = parse(MESSAGE, request)
    refuse_nul(request)
    key = idempotency.key_of(idempotency_key, request)
    caller = _program(organization, user_id)
    call = Call(caller, Submission(message, key), request_id=str(uuid.uuid4()))
    result = accept(call)
    answer = read(result) if isinstance(result, StoredAnswer) else result
    match answer:
        case Refusal(error=error):
            raise error
        case SendResult(message_id=str(message_id)):
            return MessageResult(
                message_id=message_id,
                status=answer.status,
                resolved_channel=answer.resolved_channel,
                provider=answer.provider,
                scheduled_for=iso(answer.scheduled_for),
                replayed=answer is not result,
            )
    raise AssertionError("an accepted message has an id")


def _program(organization: Organization | str, user_id: int) -> Caller:
    key = organization if isinstance(organization, str) else organization.pk
    try:
        record = organizations.get(key)
    except Organization.DoesNotExist:
        raise errors.NotFound.at("organization", "no such organization") from None
    return Caller(record, application_id=PROGRAM, user_id=user_id, test=False)
