"""A dry run: every check, the route and the rendered content of a request; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from messaging.accept.planning import plan
from messaging.accept.plans import CallerMessage, Plan, Recipient
from messaging.accept.requests import MessageInput
from messaging.accept.results import RecipientResult, Refusal, SendResult, of_plan, of_recipient
from messaging.accept.rows import content_of
from messaging.content import compose, rendering
from messaging.policy import organization_policy
from messaging.reports import trace
from messaging.reports.trace import TraceStep
from push.devices import active_devices
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.provider import Content
from rme.tenants.authentication import Caller


@dataclass(frozen=True, slots=True)
class RecipientDryRun:
    """One recipient's part of a dry run."""

    result: RecipientResult
    trace: Sequence[TraceStep]
    content: Content | None
    """What would be handed to the provider; None if nothing would, or it cannot be rendered."""
    render_error: str | None
    """Why the content cannot be rendered."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result that a request would have had, without a message id, and its recipients."""

    result: SendResult | Refusal
    recipients: Sequence[RecipientDryRun]
    planned: bool
    """False if the request was refused as a whole, before any recipient was decided."""


def dry_run(caller: Caller, given: MessageInput, *, request_id: str) -> DryRun:
    """Decide and render one request, as accepting and sending it now would."""
    (each,) = plan([CallerMessage(caller, given)])
    refusal = each.refusal
    return DryRun(
        result=Refusal(refusal, request_id) if refusal else of_plan(each, None, request_id),
        recipients=[_recipient(caller, each, one) for one in each.recipients],
        planned=each.error is None,
    )


def _recipient(caller: Caller, each: Plan, one: Recipient) -> RecipientDryRun:
    content, failure = None, None
    if one.chosen and each.error is None:
        try:
            content = _content(caller, each, one)
        except (rendering.RenderFailed, rendering.RenderLimit) as error:
            failure = str(error)
    steps = trace.decisions(clock.now(), one.decisions)
    return RecipientDryRun(of_recipient(one), steps, content, failure)


def _content(caller: Caller, each: Plan, one: Recipient) -> Content:
    """Render what would be handed over; a push for the first of the recipient's devices."""
    chosen, contact = one.chosen, one.contact
    assert chosen is not None and contact is not None  # only called for a recipient with a channel
    request = compose.RenderRequest(
        organization=caller.organization,
        delivery_id="",
        message_id="",
        contact=contact,
        address=chosen.address or "",
        body=content_of(each, {"": one.given.variables}),
        template=chosen.template,
        policy=organization_policy.of(caller.organization.id),
        category=each.rules.name,
    )
    match chosen.channel:
        case Channel.EMAIL:
            return compose.email(request)
        case Channel.SMS:
            return compose.sms(request)
    devices = active_devices(caller.organization.id, [contact.id])[contact.id]
    return compose.push(request, devices[0])
