"""The third step of accepting: from plans to the values that the store takes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.plan import Plan, RecipientPlan
from messaging.accept.results import BulkResult, Result
from messaging.domain.channels import Channel
from messaging.domain.contents import ContentBody, LiteralContent, PushOverrides, Sender
from messaging.domain.statuses import Status
from messaging.store import accepted
from messaging.store.accepted import AcceptedDelivery, AcceptedMessage, KeyedAnswer
from messaging.store.idempotency import KeyScope
from rme.core.db import clock
from rme.tenants.oauth.authentication import Caller


class AcceptedBatch:
    """The messages and answers of calls that are stored together, all by one statement."""

    def __init__(self) -> None:
        self.now = clock.now()
        self.messages: list[AcceptedMessage] = []
        self._answers: dict[KeyScope, KeyedAnswer] = {}

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

    def add(self, message_id: str, plan: Plan, traceparent: str = "") -> None:
        """Add a planned message, with the context of its trace, if it has one."""
        self.messages.append(message_of(message_id, plan, traceparent))

    def add_key(
        self,
        caller: Caller,
        key: CallerKey,
        result: Result | BulkResult,
        latest_schedule: datetime | None,
    ) -> None:
        """Add the answer to store under a key, until 24 hours after the latest schedule."""
        scope = idempotency.scope_of(caller, key)
        self._answers[scope] = KeyedAnswer(
            organization_id=scope.organization_id,
            application_id=scope.application_id,
            key=key.text,
            digest=key.digest,
            status=result.status_code,
            body=result.body.decode(),
            expires_at=max(self.now, latest_schedule or self.now) + idempotency.LIFE,
        )

    def store(self) -> None:
        """Store all by one statement. Raises what `accepted.store` raises."""
        accepted.store(self.messages, list(self._answers.values()), self.now)


def message_of(message_id: str, plan: Plan, traceparent: str = "") -> AcceptedMessage:
    """Build the message of a plan."""
    request, message = plan.request, plan.request.message
    deliveries = [
        _delivery(
            accepted.new_delivery_id(message_id, recipient.draft.position),
            recipient,
            request.channels,
        )
        for recipient in plan.recipients
    ]
    variables = {
        delivery.id: recipient.draft.input.variables
        for delivery, recipient in zip(deliveries, plan.recipients, strict=True)
        if recipient.draft.input.variables
    }
    content = content_of(plan, variables)
    if traceparent:
        content["traceparent"] = traceparent
    return AcceptedMessage(
        id=message_id,
        organization_id=request.organization.id,
        application_id=request.caller.application_id,
        category=request.rules.name,
        priority=request.rules.priority,
        channels=request.channels,
        strategy=message.strategy,
        fallback_after=message.fallback_after,
        template=message.template.name if message.template else None,
        language=message.template.language if message.template else None,
        metadata=message.metadata,
        is_test=request.caller.test,
        expires_after=request.rules.expires_after,
        content=content,
        deliveries=deliveries,
    )


def _delivery(
    delivery_id: str, recipient: RecipientPlan, channels: Sequence[Channel]
) -> AcceptedDelivery:
    chosen, error, account = recipient.chosen, recipient.error, recipient.account
    return AcceptedDelivery(
        id=delivery_id,
        contact_id=recipient.draft.input.contact_id,
        position=recipient.draft.position,
        status=recipient.status,
        channel=chosen.channel if chosen else channels[0],
        next_channels=recipient.next_channels,
        address=chosen.address if chosen else None,
        template_version_id=chosen.template.version_id if chosen and chosen.template else None,
        provider=recipient.provider,
        account_id=account.id if account else None,
        scheduled_for=recipient.scheduled_for,
        reason=error.code if error else None,
        detail=error.message if error else None,
        trace=recipient.trace,
    )


def content_of(plan: Plan, variables: Mapping[str, dict[str, object]]) -> ContentBody:
    """Return the content of a message. `variables` are of each recipient, by delivery id."""
    request, message = plan.request, plan.request.message
    default, sender = request.sender, message.from_
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
    if Channel.SMS in request.channels:
        body["sms_sender"] = request.sms_sender
    if plan.record:
        body["record"] = plan.record
    if message.context and message.context.variables:
        body["variables"] = message.context.variables
    if variables:
        body["recipients"] = dict(variables)
    return body
