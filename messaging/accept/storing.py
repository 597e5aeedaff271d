"""The third step of accepting: from plans to the values that the store takes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.refusals import error_of
from messaging.accept.requests import MessageInput
from messaging.accept.results import BulkResult, Result
from messaging.accept.send_request import CallerMessage
from messaging.domain.channels import Channel
from messaging.domain.contents import ContentBody, LiteralContent, PushOverrides, Sender
from messaging.domain.planning import Plan, RecipientPlan, Variables
from messaging.domain.statuses import Status
from messaging.store import accepted
from messaging.store.accepted import AcceptedDelivery, AcceptedMessage, KeyedAnswer
from rme.tenants.oauth.authentication import Caller


class AcceptedBatch(NamedTuple):
    """The messages and answers of calls that are stored together, all by one statement."""

    now: datetime
    messages: Sequence[AcceptedMessage]
    answers: Sequence[KeyedAnswer]

    @property
    def channels(self) -> set[str]:
        """Return the channels on which a delivery may be sent at once."""
        return {
            delivery.channel
            for message in self.messages
            for delivery in message.deliveries
            if delivery.status is Status.ACCEPTED
        }

    @property
    def latest_schedule(self) -> datetime | None:
        """Return the latest time for which a delivery is scheduled."""
        deliveries = (delivery for message in self.messages for delivery in message.deliveries)
        return max((d.scheduled_for for d in deliveries if d.scheduled_for), default=None)

    def store(self) -> None:
        """Store all by one statement. Raises what `accepted.store` raises."""
        accepted.store(self.messages, self.answers, self.now)


def keyed_answer(
    caller: Caller,
    key: CallerKey,
    result: Result | BulkResult,
    now: datetime,
    latest_schedule: datetime | None,
) -> KeyedAnswer:
    """Build the answer to store under a key, until 24 hours after the latest schedule."""
    scope = idempotency.scope_of(caller, key)
    return KeyedAnswer(
        organization_id=scope.organization_id,
        application_id=scope.application_id,
        key=key.text,
        digest=key.digest,
        status=result.status_code,
        body=result.body.decode(),
        expires_at=max(now, latest_schedule or now) + idempotency.LIFE,
    )


def message_of(
    message_id: str, request: CallerMessage, plan: Plan, traceparent: str = ""
) -> AcceptedMessage:
    """Build the message of a planned request, with the context of its trace, if it has one."""
    (caller, message), outline = request, plan.outline
    deliveries = []
    variables: dict[str, Variables] = {}
    for recipient in plan.recipients:
        delivery = _delivery(
            accepted.new_delivery_id(message_id, recipient.draft.position),
            recipient,
            outline.channels,
        )
        deliveries.append(delivery)
        if recipient.draft.requested.variables:
            variables[delivery.id] = recipient.draft.requested.variables
    content = content_of(message, plan, variables)
    if traceparent:
        content["traceparent"] = traceparent
    return AcceptedMessage(
        id=message_id,
        organization_id=caller.organization.id,
        application_id=caller.application_id,
        category=outline.rules.name,
        priority=outline.rules.priority,
        channels=outline.channels,
        strategy=message.strategy,
        fallback_after=message.fallback_after,
        template=message.template.name if message.template else None,
        language=message.template.language if message.template else None,
        metadata=message.metadata,
        is_test=caller.test,
        expires_after=outline.rules.expires_after,
        content=content,
        deliveries=deliveries,
    )


def _delivery(
    delivery_id: str, recipient: RecipientPlan, channels: Sequence[Channel]
) -> AcceptedDelivery:
    draft, chosen, account = recipient.draft, recipient.chosen, recipient.account
    error = error_of(recipient.refusal) if recipient.refusal else None
    return AcceptedDelivery(
        id=delivery_id,
        contact_id=draft.requested.contact_id,
        position=draft.position,
        status=recipient.status,
        channel=chosen.channel if chosen else channels[0],
        next_channels=recipient.next_channels,
        address=chosen.address if chosen else None,
        template_version_id=chosen.version.version_id if chosen and chosen.version else None,
        provider=account.name if account else None,
        account_id=account.id if account else None,
        scheduled_for=recipient.scheduled_for,
        reason=error.code if error else None,
        detail=error.message if error else None,
        trace=recipient.trace,
    )


def content_of(
    message: MessageInput, plan: Plan, variables: Mapping[str, Variables]
) -> ContentBody:
    """Return the content of a message. `variables` are of each recipient, by delivery id."""
    outline, sender = plan.outline, message.from_
    default = outline.sender
    body = ContentBody()
    if message.content and (texts := message.content.model_dump(exclude_none=True)):
        body["content"] = cast(LiteralContent, texts)
    if message.push and (overrides := message.push.model_dump(exclude_none=True)):
        body["push"] = cast(PushOverrides, overrides)
    body["sender"] = Sender(
        domain=default.domain if default else None,
        local_part=(sender and sender.local_part) or (default.local_part if default else None),
        name=(sender and sender.name) or (default.name if default else ""),
    )
    if Channel.SMS in outline.channels:
        body["sms_sender"] = outline.sms_sender
    if plan.record:
        body["record"] = plan.record
    if message.context and message.context.variables:
        body["variables"] = message.context.variables
    if variables:
        body["recipients"] = variables
    return body
