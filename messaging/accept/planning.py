"""Planning: the channel, content, provider and time of each recipient, or its error.

Contacts, devices, records, templates and gates are read once for all requests of a call; each
recipient is then decided from what was read. Nothing is stored here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from messaging.accept import timing
from messaging.accept.requests import MessageInput, RecipientInput, duplicates
from messaging.consent import gates
from messaging.content import compose, rendering, templates
from messaging.content.templates import ActiveTemplate
from messaging.delivery import accounts as provider_accounts
from messaging.models.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.models.statuses import Status
from messaging.policy.organization_policy import CategoryRules, Domain, Policy
from push.devices import active_devices
from rme.core import errors
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.zones import quiet_until, zone
from rme.crm.connectors.records import ContactRecord, Record
from rme.crm.contacts import get_contacts, get_records
from rme.tenants.authentication import Caller, OrganizationRecord


@dataclass(slots=True)
class Option:
    """One channel on which a recipient can be reached, with its address and its template."""

    channel: Channel
    address: str | None
    devices: frozenset[tuple[str, str]] = frozenset()
    """For PUSH: the (platform, app) of each of the contact's devices."""
    template: ActiveTemplate | None = None


@dataclass(slots=True)
class Recipient:
    """One recipient of a plan. Planning fills it in step by step."""

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
    decisions: list[ChannelDecision] = field(default_factory=list)

    @property
    def trace(self) -> list[list[str | None]] | None:
        """Return the decisions to store; None where the only channel requested was chosen."""
        if len(self.decisions) == 1:
            (only,) = self.decisions
            if only.result == CHOSEN and not only.detail:
                return None
        return [list(decision) for decision in self.decisions]

    def note(self, channel: str, result: str, detail: str | None = None) -> None:
        """Add a decision to the trace."""
        self.decisions.append(ChannelDecision(channel, result, detail))

    def refuse(self, error: errors.ApiError, status: Status = Status.BLOCKED) -> None:
        """Set the error because of which the recipient gets nothing."""
        self.error, self.status, self.chosen = error, status, None


@dataclass(slots=True)
class Plan:
    """One request and its recipients. Planning fills it in step by step."""

    given: MessageInput
    rules: CategoryRules
    channels: list[Channel]
    recipients: list[Recipient]
    sender: Domain | None = None
    record: Record | None = None
    error: errors.ApiError | None = None
    """Because of which the request is refused as a whole."""

    @property
    def refusal(self) -> errors.ApiError | None:
        """Return the error of a request that is refused and not stored; None for all others."""
        if self.error is not None:
            return self.error
        if len(self.recipients) == 1:
            (only,) = self.recipients
            if isinstance(only.error, errors.InvalidPayload | errors.NotFound):
                return only.error
        return None

    @property
    def latest_schedule(self) -> datetime | None:
        """Return the latest time for which a recipient is scheduled."""
        times = [r.scheduled_for for r in self.recipients if r.scheduled_for]
        return max(times) if times else None


def plan(caller: Caller, policy: Policy, requests: Sequence[MessageInput]) -> list[Plan]:
    """Return the plan of each request, in order. The number of queries does not grow with them."""
    plans = [_outline(policy, request) for request in requests]
    open_plans = [p for p in plans if p.error is None]
    _read_contacts(caller.organization, open_plans)
    _read_records(caller.organization, open_plans)
    found = templates.find_active(
        caller.organization.id, {p.given.template.name for p in open_plans if p.given.template}
    )
    for each in open_plans:
        _schedule(each, caller.organization)
        _choose_content(each, caller.organization, found)
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
    domain = given.from_.domain if given.from_ else None
    outline.sender = policy.domains.get(domain) if domain else policy.default_domain
    if domain and outline.sender is None:
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


def _read_contacts(organization: OrganizationRecord, plans: Sequence[Plan]) -> None:
    """Set each recipient's contact and the channels on which it has an address or a device."""
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
                address = compose.address_of(contact, channel)
                own = devices.get(contact.id, []) if channel is Channel.PUSH else []
                if address or own:
                    kinds = frozenset((device.platform, device.app) for device in own)
                    recipient.options.append(Option(channel, address, kinds))
                else:
                    recipient.note(channel, errors.Unreachable.code)


def _read_records(organization: OrganizationRecord, plans: Sequence[Plan]) -> None:
    """Set the record of each plan that names one, as it is now; templates may use it."""
    wanted = [(each, c.record_id) for each in plans if (c := each.given.context) and c.record_id]
    records = get_records(organization.id, list({record_id for _, record_id in wanted}))
    for each, record_id in wanted:
        each.record = records.get(record_id)
        if each.record is None:
            each.error = errors.NotFound.at("context.recordId", "no such record")


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


def _choose_content(
    each: Plan, organization: OrganizationRecord, found: dict[templates.TemplateKey, ActiveTemplate]
) -> None:
    """Keep the channels of each recipient that have content; refuse the plan if none has."""
    if each.error is not None:
        return
    if each.given.content is not None:
        fitting = [c for c in each.channels if each.given.content.suits(c)]
        if not fitting:
            wanted = {Channel.EMAIL: "subject", Channel.SMS: "text", Channel.PUSH: "title"}
            name = wanted[each.channels[0]]
            each.error = errors.InvalidPayload.at(
                f"content.{name}", f"is required for {each.channels[0]}"
            )
        for recipient in each.recipients:
            _keep(recipient, fitting, errors.InvalidPayload.code)
        return
    for recipient in each.recipients:
        if recipient.contact is not None and each.error is None:
            _choose_templates(each, recipient, recipient.contact, organization, found)


def _keep(recipient: Recipient, channels: Sequence[Channel], error_code: str) -> None:
    """Keep a recipient's channels that have content, and note the error of the others."""
    for option in recipient.options:
        if option.channel not in channels:
            recipient.note(option.channel, error_code)
    recipient.options = [option for option in recipient.options if option.channel in channels]


def _choose_templates(
    each: Plan,
    recipient: Recipient,
    contact: ContactRecord,
    organization: OrganizationRecord,
    found: dict[templates.TemplateKey, ActiveTemplate],
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
    given = each.given.variables_of(recipient.given)
    gaps = [
        errors.Detail(_variable_path(each.given, recipient, path), message)
        for version in present
        for path, message in rendering.missing_variables(version.variables, given)
    ]
    if gaps:
        gaps = list(dict.fromkeys(gaps))
        each.error = errors.InvalidPayload(f"{gaps[0].field}: {gaps[0].message}", details=gaps)
        return
    for option in recipient.options:
        option.template = versions[option.channel]
    fitting = [channel for channel, version in versions.items() if version]
    _keep(recipient, fitting, errors.TemplateNotFound.code)


def _variable_path(given: MessageInput, recipient: Recipient, path: str) -> str:
    """Return the path of the field in which a variable is missing."""
    top = path.partition(".")[0].partition("[")[0]
    if top in recipient.given.variables or given.context is None:
        return f"to[{recipient.position}].variables.{path}"
    return f"context.variables.{path}"


def _pass_gates(caller: Caller, policy: Policy, plans: Sequence[Plan]) -> None:
    """Choose for each recipient the first channel that passes the gates and has a route."""
    undecided = [
        (each, recipient, option)
        for each in plans
        for recipient in each.recipients
        if recipient.error is None
        for option in recipient.options
    ]
    own = caller.organization.id
    results = gates.check(
        [
            gates.Candidate(own, r.given.contact_id, o.channel, o.address, each.rules)
            for each, r, o in undecided
        ]
    )
    refused: dict[int, errors.ApiError] = {}
    for (each, recipient, option), result in zip(undecided, results, strict=True):
        if recipient.chosen is not None:
            continue
        error = (
            result.refusal()
            if result.refusal
            else _take_route(caller, policy, each, recipient, option)
        )
        if error is None:
            recipient.note(option.channel, CHOSEN, result.entry)
            _apply_quiet_hours(caller.organization, policy, each, recipient)
            recipient.status = Status.SCHEDULED if recipient.scheduled_for else Status.ACCEPTED
        else:
            recipient.note(option.channel, error.code, result.entry)
            refused.setdefault(id(recipient), error)
    for each in plans:
        for recipient in each.recipients:
            if recipient.chosen is None and recipient.error is None:
                error = refused.get(id(recipient)) or errors.Unreachable()
                if isinstance(error, errors.RateLimited):
                    each.error = error  # of the whole request, so that it can be repeated
                failed = isinstance(error, errors.ProviderError)
                recipient.refuse(error, Status.FAILED if failed else Status.BLOCKED)


def _take_route(
    caller: Caller, policy: Policy, each: Plan, recipient: Recipient, option: Option
) -> errors.ApiError | None:
    accounts = provider_accounts.configured(
        policy, option.channel, option.address, devices=option.devices, test=caller.test
    )
    if not accounts:
        return errors.ProviderError(f"No provider account for {option.channel}.")
    if recipient.scheduled_for is None:
        try:
            provider_accounts.require_rate(
                caller.organization.id, option.channel, accounts, each.rules
            )
        except errors.RateLimited as error:
            return error
    first = provider_accounts.expected(accounts)
    recipient.chosen = option
    recipient.provider, recipient.account_id = first.name, first.id
    return None


def _apply_quiet_hours(
    organization: OrganizationRecord, policy: Policy, each: Plan, recipient: Recipient
) -> None:
    """Move a send that would fall into the quiet hours of its channel to their end."""
    chosen, contact = recipient.chosen, recipient.contact
    hours = policy.quiet(chosen.channel, each.rules) if chosen else None
    if hours is None or chosen is None or contact is None:
        return
    start = recipient.scheduled_for or clock.now()
    until = quiet_until(start, hours, zone(contact.zone, organization.zone))
    if until:
        recipient.scheduled_for = until
        recipient.note(chosen.channel, QUIET_HOURS, clock.iso(until))
