"""A dry run: every check, the route and the rendered content of a request; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from messaging.accept import facts
from messaging.accept.plan import Plan, RecipientPlan, plan, recipient_result, result_of
from messaging.accept.requests import MessageInput
from messaging.accept.results import RecipientResult, Refusal, SendResult
from messaging.accept.send_request import CallerMessage
from messaging.accept.storing import content_of
from messaging.content import compose, costly_steps, rendering, templates
from messaging.domain.channels import Channel
from messaging.reports import trace
from messaging.reports.trace import TraceStep
from push.active_devices import DeviceRecord, active_devices
from rme.core.db import clock
from rme.core.provider import Content
from rme.tenants.oauth.authentication import Caller


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


def dry_run(caller: Caller, message: MessageInput, *, request_id: str) -> DryRun:
    """Decide and render one request, as accepting and sending it now would."""
    (planned,) = plan(facts.read([CallerMessage(caller, message)]))
    refusal = planned.refusal
    contents = _contents(caller, planned) if planned.error is None else {}
    return DryRun(
        result=Refusal(refusal, request_id) if refusal else result_of(planned, None, request_id),
        recipients=[
            _recipient(recipient, contents.get(index))
            for index, recipient in enumerate(planned.recipients)
        ],
        planned=planned.error is None,
    )


def _recipient(
    recipient: RecipientPlan, content: Content | rendering.Failure | None
) -> RecipientDryRun:
    steps = trace.decisions(clock.now(), recipient.decisions)
    if isinstance(content, Exception):
        return RecipientDryRun(recipient_result(recipient), steps, None, str(content))
    return RecipientDryRun(recipient_result(recipient), steps, content, None)


def _contents(caller: Caller, planned: Plan) -> dict[int, Content | rendering.Failure]:
    """Return what would be handed over, or why it can't be rendered, by the recipient's index.

    A push is for the first of the recipient's devices. One errand renders the template for all of
    them. Raises RateLimited.
    """
    requests = {
        index: _request(caller, planned, recipient)
        for index, recipient in enumerate(planned.recipients)
        if recipient.chosen
    }
    versions = {
        index: templates.to_render(request.template, request.context)
        for index, request in requests.items()
        if request.template
    }
    rendered: dict[int, rendering.RenderedVersion | rendering.Failure] = {}
    if versions:
        organization_id = caller.organization.id
        outcomes = costly_steps.render_each(organization_id, list(versions.values()))
        rendered = dict(zip(versions, outcomes, strict=True))
    contents: dict[int, Content | rendering.Failure] = {}
    for index, request in requests.items():
        outcome = rendered.get(index)
        if isinstance(outcome, Exception):
            contents[index] = outcome
        else:
            contents[index] = _content(caller, planned.recipients[index], request, outcome)
    return contents


def _request(caller: Caller, planned: Plan, recipient: RecipientPlan) -> compose.RenderRequest:
    chosen, contact = recipient.chosen, recipient.draft.contact
    assert chosen is not None and contact is not None  # only called for a recipient with a channel
    return compose.RenderRequest(
        organization=caller.organization,
        delivery_id="",
        message_id="",
        contact=contact,
        address=chosen.address or "",
        body=content_of(planned, {"": recipient.draft.input.variables}),
        template=chosen.template,
        policy=planned.request.policy,
        category=planned.request.rules.name,
    )


def _content(
    caller: Caller,
    recipient: RecipientPlan,
    request: compose.RenderRequest,
    rendered: rendering.RenderedVersion | None,
) -> Content:
    assert recipient.chosen is not None  # only called for a recipient with a channel
    devices: list[DeviceRecord] = []
    if recipient.chosen.channel is Channel.PUSH:
        contact_id = request.contact.id
        devices_by_contact = active_devices(caller.organization.id, [contact_id], test=caller.test)
        devices = devices_by_contact[contact_id][:1]
    (content,) = compose.composed(request, recipient.chosen.channel, devices, rendered)
    return content
