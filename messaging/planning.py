"""What becomes of each recipient of each request: which channel, or why none.

Pure decisions over sets: everything that has to be read (contacts, devices, templates, gates) is
read once for all requests, and each recipient is decided from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from messaging import composing, gates, rendering, routing, templates, timing
from messaging.policy import CategoryRules, Domain, Policy
from messaging.schemas.messages import ContentInput, MessageInput, RecipientInput, duplicates
from messaging.states import Status
from messaging.templates import ActiveTemplate
from push.devices import active_devices
from rme.core import clock, errors
from rme.core.channels import Channel
from rme.crm.connectors.base import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants.authentication import Caller, OrganizationRecord


@dataclass(slots=True)
class Option:
    """One channel for one recipient: where to, and with which template."""

    channel: Channel
    address: str | None
    template: ActiveTemplate | None


@dataclass(slots=True)
class Recipient:
    """One recipient, while it is decided."""

    position: int
    given: RecipientInput
    contact: ContactRecord | None = None
    options: list[Option] = field(default_factory=list)
    chosen: Option | None = None
    provider: str | None = None
    account_id: int | None = None
    scheduled_for: datetime | None = None
    error: errors.ApiError | None = None
    status: Status = Status.ACCEPTED

    def refuse(self, error: errors.ApiError, status: Status = Status.BLOCKED) -> None:
        self.error, self.status, self.chosen = error, status, None


@dataclass(slots=True)
class Plan:
    """One request, while it is decided. `error`: it is refused as a whole and leaves no trace."""

    given: MessageInput
    rules: CategoryRules
    channels: list[Channel]
    recipients: list[Recipient]
    sender: Domain | None = None
    error: errors.ApiError | None = None


def plan(caller: Caller, policy: Policy, requests: Sequence[MessageInput]) -> list[Plan]:
    """Decide requests, in order. Reads contacts, devices, templates and gates once for all."""
    plans = [_outline(policy, request) for request in requests]
    open_plans = [p for p in plans if p.error is None]
    _read_people(caller.organization, open_plans)
    found = templates.active(
        caller.organization.id, {p.given.template.name for p in open_plans if p.given.template}
    )
    for each in open_plans:
        _schedule(each, caller.organization)
        _choose_texts(each, caller.organization, found)
    _pass_gates(caller, policy, [p for p in plans if p.error is None])
    return plans


def _outline(policy: Policy, given: MessageInput) -> Plan:
    rules = policy.categories.get(given.category)
    outline = Plan(
        given=given,
        rules=rules or next(iter(policy.categories.values())),
        channels=_channels(given, rules),
        recipients=[Recipient(i, recipient) for i, recipient in enumerate(given.to)],
    )
    if rules is None:
        outline.error = errors.InvalidPayload.at("category", "no such category")
        return outline
    outline.error = duplicates(given)
    asked = given.from_.domain if given.from_ else None
    outline.sender = policy.domains.get(asked) if asked else policy.default_domain
    if asked and outline.sender is None:
        outline.error = errors.InvalidPayload.at("from.domain", "not a verified sender domain")
    elif outline.sender is None and outline.channels == [Channel.EMAIL]:
        outline.error = errors.InvalidPayload.at(
            "from.domain", "the organization has no verified sender domain"
        )
    return outline


def _channels(given: MessageInput, rules: CategoryRules | None) -> list[Channel]:
    if given.channels:
        return [Channel(name) for name in given.channels]
    if given.channel and given.channel != "AUTO":
        return [Channel(given.channel)]
    return list(rules.channel_order) if rules else []


def _read_people(organization: OrganizationRecord, plans: Sequence[Plan]) -> None:
    """Put contacts and their addresses on the recipients."""
    wanted = list({r.given.contact_id for p in plans for r in p.recipients})
    contacts = get_contacts(organization.id, wanted)
    pushed = {r.given.contact_id for p in plans if Channel.PUSH in p.channels for r in p.recipients}
    devices = active_devices(organization.id, list(pushed)) if pushed else {}
    for each in plans:
        for recipient in each.recipients:
            contact = contacts.get(recipient.given.contact_id)
            recipient.contact = contact
            field_name = f"to[{recipient.position}].contactId"
            if contact is None:
                recipient.refuse(errors.NotFound.at(field_name, "no such contact"))
                continue
            for channel in each.channels:
                address = composing.address_of(contact, channel)
                if address or (channel is Channel.PUSH and contact.id in devices):
                    recipient.options.append(Option(channel, address, None))


def _schedule(each: Plan, organization: OrganizationRecord) -> None:
    schedule = each.given.schedule
    if schedule is None:
        return
    for recipient in each.recipients:
        if recipient.contact is None:
            continue
        try:
            recipient.scheduled_for = timing.due(
                schedule,
                contact_zone=recipient.contact.zone,
                organization_zone=organization.zone,
                now=clock.now(),
            )
        except errors.InvalidPayload as error:
            each.error = error
        except timing.TooLate:
            late = errors.InvalidPayload.at("schedule.time", "this time has passed there")
            recipient.refuse(late, Status.EXPIRED)


def _choose_texts(
    each: Plan, organization: OrganizationRecord, found: dict[templates.Key, ActiveTemplate]
) -> None:
    """Leave each recipient the channels that there is a text for; refuse the plan if none has."""
    if each.error is not None:
        return
    if each.given.content is not None:
        fitting = [c for c in each.channels if suits(each.given.content, c)]
        if not fitting:
            wanted = {Channel.EMAIL: "subject", Channel.SMS: "text", Channel.PUSH: "title"}
            name = wanted[each.channels[0]]
            each.error = errors.InvalidPayload.at(
                f"content.{name}", f"is required for {each.channels[0]}"
            )
        for recipient in each.recipients:
            recipient.options = [o for o in recipient.options if o.channel in fitting]
        return
    for recipient in each.recipients:
        if recipient.contact is not None and each.error is None:
            _choose_templates(each, recipient, recipient.contact, organization, found)


def suits(content: ContentInput, channel: Channel) -> bool:
    """Say whether literal content has what a channel needs."""
    match channel:
        case Channel.EMAIL:
            return bool(
                (content.subject or content.title)
                and (content.text or content.html or content.body)
            )
        case Channel.SMS:
            return bool(content.text or content.body)
        case Channel.PUSH:
            return bool(content.title or content.body or content.text)


def _choose_templates(
    each: Plan,
    recipient: Recipient,
    contact: ContactRecord,
    organization: OrganizationRecord,
    found: dict[templates.Key, ActiveTemplate],
) -> None:
    assert each.given.template is not None  # the schema: template or content
    name = each.given.template.name
    wanted = templates.languages(
        each.given.template.language or contact.language or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    versions = {c: templates.pick(found, name, c, wanted) for c in each.channels}
    present = [version for version in versions.values() if version]
    if not present:
        each.error = errors.TemplateNotFound(
            f"There is no active template {name} in {wanted[0]} for {', '.join(each.channels)}."
        )
        return
    if any(version.category != each.given.category for version in present):
        each.error = errors.InvalidPayload.at(
            "category", f"the template's category is {present[0].category}"
        )
        return
    given = variables_of(each.given, recipient.given)
    gaps = [
        errors.Detail(_place(each.given, recipient, path), message)
        for version in present
        for path, message in rendering.missing_variables(version.variables, given)
    ]
    if gaps:
        gaps = list(dict.fromkeys(gaps))
        each.error = errors.InvalidPayload(f"{gaps[0].field}: {gaps[0].message}", details=gaps)
        return
    for option in recipient.options:
        option.template = versions[option.channel]
    recipient.options = [o for o in recipient.options if o.template or each.given.content]


def _place(given: MessageInput, recipient: Recipient, path: str) -> str:
    """Name the field in which a variable would have to stand."""
    top = path.partition(".")[0].partition("[")[0]
    if top in recipient.given.variables or given.context is None:
        return f"to[{recipient.position}].variables.{path}"
    return f"context.variables.{path}"


def variables_of(given: MessageInput, recipient: RecipientInput) -> dict[str, Any]:
    """Give a recipient's variables: everybody's, and its own over them."""
    common = given.context.variables if given.context else {}
    return {**common, **recipient.variables} if recipient.variables else common


def _pass_gates(caller: Caller, policy: Policy, plans: Sequence[Plan]) -> None:
    """Choose for each recipient the first channel that passes the gates and has a route."""
    undecided = [
        (each, recipient, option)
        for each in plans
        for recipient in each.recipients
        if recipient.error is None
        for option in recipient.options
    ]
    refusals = gates.check(
        caller.organization.id,
        [
            gates.Candidate(r.given.contact_id, o.channel, o.address, each.rules)
            for each, r, o in undecided
        ],
    )
    refused: dict[int, errors.ApiError] = {}
    for (_, recipient, option), refusal in zip(undecided, refusals, strict=True):
        if recipient.chosen is not None:
            continue
        error = refusal() if refusal else _take_route(caller, policy, recipient, option)
        if error is None:
            recipient.status = Status.SCHEDULED if recipient.scheduled_for else Status.ACCEPTED
        else:
            refused.setdefault(id(recipient), error)
    for each in plans:
        for recipient in each.recipients:
            if recipient.chosen is None and recipient.error is None:
                error = refused.get(id(recipient)) or errors.Unreachable()
                failed = isinstance(error, errors.ProviderError)
                recipient.refuse(error, Status.FAILED if failed else Status.BLOCKED)


def _take_route(
    caller: Caller, policy: Policy, recipient: Recipient, option: Option
) -> errors.ApiError | None:
    accounts = routing.configured(policy, option.channel, option.address, test=caller.test)
    if not accounts:
        return errors.ProviderError(f"No provider is configured for {option.channel}.")
    first = (routing.order(accounts) or accounts)[0]
    recipient.chosen = option
    recipient.provider, recipient.account_id = first.name, first.id
    return None
