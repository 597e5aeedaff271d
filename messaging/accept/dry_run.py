"""A dry run: every check, the route and the rendered content of a request; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from messaging.accept.facts.reading import read_facts
from messaging.accept.facts.sources import Sources
from messaging.accept.plans import plans_of
from messaging.accept.refusals import error_of
from messaging.accept.requests import MessageInput
from messaging.accept.results import (
    RecipientResult,
    Refusal,
    SendResult,
    recipient_result,
    result_of,
)
from messaging.accept.send_request import CallerMessage
from messaging.accept.storing import content_of
from messaging.content import compose, costly_steps, rendering, templates
from messaging.domain.channels import Channel
from messaging.domain.planning import Option, Plan, RecipientPlan
from messaging.policy import organization_policy
from messaging.reports import trace
from messaging.reports.trace import TraceStep
from push.active_devices import DeviceRecord, reached
from rme.core import errors
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
    set_facts = read_facts([CallerMessage(caller, message)])
    (plan,) = plans_of(set_facts.requests, set_facts.now)
    if isinstance(plan, errors.ApiError):  # its variables can't be checked now
        return DryRun(Refusal(plan, request_id), recipients=[], planned=False)
    refusal, is_planned = plan.refusal, plan.whole_refusal is None
    contents = _Contents(caller, message, plan, set_facts.sources).all() if is_planned else {}
    return DryRun(
        result=Refusal(error_of(refusal), request_id)
        if refusal
        else result_of(plan, None, request_id),
        recipients=[
            _recipient(recipient, contents.get(index))
            for index, recipient in enumerate(plan.recipients)
        ],
        planned=is_planned,
    )


def _recipient(
    recipient: RecipientPlan, content: Content | rendering.Failure | None
) -> RecipientDryRun:
    steps = trace.decisions(clock.now(), recipient.decisions)
    if isinstance(content, Exception):
        return RecipientDryRun(recipient_result(recipient), steps, None, str(content))
    return RecipientDryRun(recipient_result(recipient), steps, content, None)


class _Contents:
    """Renders what would be handed over for a plan."""

    def __init__(self, caller: Caller, message: MessageInput, plan: Plan, sources: Sources) -> None:
        self._caller, self._message, self._plan = caller, message, plan
        organization_id = caller.organization.id
        self._policy = organization_policy.of(organization_id)
        self._contacts = sources.contacts[organization_id]
        self._devices = sources.devices.get(organization_id, {})
        versions = sources.templates.get(organization_id, {}).values()
        self._versions = {version.version_id: version for version in versions}

    def all(self) -> dict[int, Content | rendering.Failure]:
        """Return what would be handed over, or why it can't be rendered, by the recipient's index.

        One errand renders the template for all of them. Raises RateLimited.
        """
        requests = {
            index: self._request(recipient, recipient.chosen)
            for index, recipient in enumerate(self._plan.recipients)
            if recipient.chosen
        }
        versions = {
            index: templates.to_render(request.template, request.context)
            for index, request in requests.items()
            if request.template
        }
        rendered: dict[int, rendering.RenderedVersion | rendering.Failure] = {}
        if versions:
            organization_id = self._caller.organization.id
            outcomes = costly_steps.render_each(organization_id, list(versions.values()))
            rendered = dict(zip(versions, outcomes, strict=True))
        contents: dict[int, Content | rendering.Failure] = {}
        for index, request in requests.items():
            outcome = rendered.get(index)
            if isinstance(outcome, Exception):
                contents[index] = outcome
            else:
                contents[index] = self._content(self._plan.recipients[index], request, outcome)
        return contents

    def _request(self, recipient: RecipientPlan, chosen: Option) -> compose.RenderRequest:
        requested = recipient.draft.requested
        return compose.RenderRequest(
            organization=self._caller.organization,
            delivery_id="",
            message_id="",
            contact=self._contacts[requested.contact_id],
            address=chosen.address or "",
            body=content_of(self._message, self._plan, {"": requested.variables}),
            template=self._versions[chosen.version.version_id] if chosen.version else None,
            policy=self._policy,
            category=self._plan.outline.rules.name,
        )

    def _content(
        self,
        recipient: RecipientPlan,
        request: compose.RenderRequest,
        rendered: rendering.RenderedVersion | None,
    ) -> Content:
        """Return what would be handed over; a push is for the first of the devices."""
        assert recipient.chosen is not None  # only called for a recipient with a channel
        devices: list[DeviceRecord] = []
        if recipient.chosen.channel is Channel.PUSH:
            devices = reached(self._devices[request.contact.id], test=self._caller.test)[:1]
        (content,) = compose.composed(request, recipient.chosen.channel, devices, rendered)
        return content
