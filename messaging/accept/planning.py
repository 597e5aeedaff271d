"""Planning: the channel, content, provider and time of each recipient, or its error.

Contacts, devices, records, templates and gates are read once for all requests of a call; each
recipient is then decided from what was read. Nothing is stored here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from messaging.accept import timing
from messaging.accept.plans import CallerMessage, Option, Plan, Recipient
from messaging.accept.requests import MessageInput, duplicates
from messaging.consent import gates
from messaging.content import compose, rendering, templates
from messaging.delivery import accounts as provider_accounts
from messaging.models.decisions import CHOSEN, QUIET_HOURS
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from messaging.policy.organization_policy import CategoryRules, Policy
from push.devices import active_devices_of_many
from rme.core import errors
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.zones import quiet_until, zone
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import embedded_contacts, get_contacts, get_records
from rme.tenants.authentication import Caller


def plan(requests: Sequence[CallerMessage]) -> list[Plan]:
    """Return the plan of each request, in order, of one organization or of several.

    The number of queries does not grow with them.
    """
    policies = organization_policy.of_many(list({r.caller.organization.id for r in requests}))
    plans = [
        _outline(caller, policies[caller.organization.id], message) for caller, message in requests
    ]
    open_plans = [p for p in plans if p.error is None]
    _read_contacts(open_plans)
    _read_records(open_plans)
    found = _active_templates(open_plans)
    for each in open_plans:
        _schedule(each)
        _choose_content(each, found.get(each.organization.id, {}))
    _pass_gates([p for p in plans if p.error is None])
    return plans


def _outline(caller: Caller, policy: Policy, given: MessageInput) -> Plan:
    rules = policy.categories.get(given.category)
    outline = Plan(
        caller=caller,
        policy=policy,
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


def _by_organization(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what belongs to each organization, each once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for organization_id, each in pairs:
        found[organization_id][each] = None
    return {organization_id: list(some) for organization_id, some in found.items()}


def _read_contacts(plans: Sequence[Plan]) -> None:
    """Set each recipient's contact and the channels on which it has an address or a device."""
    wanted = _by_organization(
        (p.organization.id, r.given.contact_id) for p in plans for r in p.recipients
    )
    embedded = embedded_contacts(wanted)
    contacts = {each: get_contacts(each, wanted[each], embedded[each]) for each in wanted}
    pushed = _by_organization(
        (p.organization.id, r.given.contact_id)
        for p in plans
        if Channel.PUSH in p.channels
        for r in p.recipients
    )
    devices = active_devices_of_many(pushed) if pushed else {}
    for each in plans:
        for recipient in each.recipients:
            contact = contacts[each.organization.id].get(recipient.given.contact_id)
            recipient.contact = contact
            field_name = f"to[{recipient.position}].contactId"
            if contact is None:
                recipient.refuse(errors.NotFound.at(field_name, "no such contact"))
                continue
            for channel in each.channels:
                address = compose.address_of(contact, channel)
                own = []
                if channel is Channel.PUSH:
                    own = devices[each.organization.id].get(contact.id, [])
                if address or own:
                    kinds = frozenset((device.platform, device.app) for device in own)
                    recipient.options.append(Option(channel, address, kinds))
                else:
                    recipient.note(channel, errors.Unreachable.code)


def _read_records(plans: Sequence[Plan]) -> None:
    """Set the record of each plan that names one, as it is now; templates may use it.

    One query for each organization: calls that are accepted together name none.
    """
    wanted = [(each, c.record_id) for each in plans if (c := each.given.context) and c.record_id]
    by_organization = _by_organization((p.organization.id, record) for p, record in wanted)
    records = {each: get_records(each, some) for each, some in by_organization.items()}
    for each, record_id in wanted:
        each.record = records[each.organization.id].get(record_id)
        if each.record is None:
            each.error = errors.NotFound.at("context.recordId", "no such record")


def _active_templates(plans: Sequence[Plan]) -> Mapping[str, templates.ActiveTemplates]:
    """Return the active templates that plans name, by organization."""
    return templates.find_active_of_many(
        _by_organization(
            (p.organization.id, p.given.template.name) for p in plans if p.given.template
        )
    )


def _schedule(each: Plan) -> None:
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
                organization_zone=each.organization.zone,
                now=clock.now(),
            )
        except errors.InvalidPayload as error:
            each.error = error
        except timing.TooLate:
            late = errors.InvalidPayload.at("schedule.time", "this time has passed there")
            recipient.refuse(late, Status.EXPIRED)


def _choose_content(each: Plan, found: templates.ActiveTemplates) -> None:
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
            _choose_templates(each, recipient, recipient.contact, found)


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
    found: templates.ActiveTemplates,
) -> None:
    assert each.given.template is not None  # the schema: template or content
    name, organization = each.given.template.name, each.organization
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


def _pass_gates(plans: Sequence[Plan]) -> None:
    """Choose for each recipient the first channel that passes the gates and has a route."""
    undecided = [
        (each, recipient, option)
        for each in plans
        for recipient in each.recipients
        if recipient.error is None
        for option in recipient.options
    ]
    results = gates.check(
        [
            gates.Candidate(
                each.organization.id, r.given.contact_id, o.channel, o.address, each.rules
            )
            for each, r, o in undecided
        ]
    )
    refused: dict[int, errors.ApiError] = {}
    for (each, recipient, option), result in zip(undecided, results, strict=True):
        if recipient.chosen is not None:
            continue
        error = result.refusal() if result.refusal else _take_route(each, recipient, option)
        if error is None:
            recipient.note(option.channel, CHOSEN, result.entry)
            _apply_quiet_hours(each, recipient)
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


def _take_route(each: Plan, recipient: Recipient, option: Option) -> errors.ApiError | None:
    accounts = provider_accounts.configured(
        each.policy,
        option.channel,
        option.address,
        devices=option.devices,
        test=each.caller.test,
    )
    if not accounts:
        return errors.ProviderError(f"No provider account for {option.channel}.")
    if recipient.scheduled_for is None:
        try:
            provider_accounts.require_rate(
                each.organization.id, option.channel, accounts, each.rules
            )
        except errors.RateLimited as error:
            return error
    first = provider_accounts.expected(accounts)
    recipient.chosen = option
    recipient.provider, recipient.account_id = first.name, first.id
    return None


def _apply_quiet_hours(each: Plan, recipient: Recipient) -> None:
    """Move a send that would fall into the quiet hours of its channel to their end."""
    chosen, contact = recipient.chosen, recipient.contact
    hours = each.policy.quiet(chosen.channel, each.rules) if chosen else None
    if hours is None or chosen is None or contact is None:
        return
    start = recipient.scheduled_for or clock.now()
    until = quiet_until(start, hours, zone(contact.zone, each.organization.zone))
    if until:
        recipient.scheduled_for = until
        recipient.note(chosen.channel, QUIET_HOURS, clock.iso(until))
