"""Read the facts from which the plans of a set of requests follow, in a fixed number of statements.

Contacts, devices, records, templates, gates and accounts are read once for all requests, of one
organization or of several. Only what can be sent is checked against the gates: a request that is
refused before costs no statement for them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from messaging.accept.drafts import (
    Devices,
    Draft,
    DraftRecipient,
    Option,
    RequestFacts,
    draft,
)
from messaging.accept.plan import Facts, OptionFacts, SlowCheck
from messaging.accept.send_request import CallerMessage, SendRequest, outline
from messaging.consent import gates
from messaging.consent.gates import GateResult
from messaging.content import templates, variable_checks
from messaging.content.variable_checks import Problems
from messaging.delivery import accounts as provider_accounts
from messaging.domain.channels import Channel
from messaging.policy import organization_policy
from push.active_devices import active_devices_of_many, reached
from rme.core import errors
from rme.core.db import clock
from rme.crm.connectors.records import ContactRecord, Record
from rme.crm.contacts import embedded_contacts, get_contacts, get_records


def read(messages: Sequence[CallerMessage], *, in_set: bool = False) -> list[Facts]:
    """Return the facts for the plan of each message, in order.

    `in_set`: other calls wait for these, so a message whose variables take long to check has the
    error SlowCheck. Raises RateLimited.
    """
    policies = organization_policy.of_many(list({m.caller.organization.id for m in messages}))
    requests = [
        outline(caller, policies[caller.organization.id], message) for caller, message in messages
    ]
    now = clock.now()
    open_facts = iter(_request_facts([r for r in requests if r.error is None], now))
    drafts = [draft(r, None if r.error else next(open_facts)) for r in requests]
    checked = _checked([d for d in drafts if d.error is None], in_set=in_set)
    open_checks = iter(checked)
    checks = [next(open_checks) if d.error is None else _Checks() for d in drafts]
    open_drafts = [
        d
        for d, check in zip(drafts, checks, strict=True)
        if d.error is None and check.error is None and not any(check.problems)
    ]
    options = dict(zip(map(id, open_drafts), _options(open_drafts), strict=True))
    return [
        Facts(d, check.problems, check.error, options.get(id(d), {}), now)
        for d, check in zip(drafts, checks, strict=True)
    ]


def _by_organization(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group values by organization, each value once."""
    groups: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for organization_id, value in pairs:
        groups[organization_id][value] = None
    return {organization_id: list(values) for organization_id, values in groups.items()}


# --- recipients and content -----------------------------------------------------------------------


def _request_facts(requests: Sequence[SendRequest], now: datetime) -> list[RequestFacts]:
    """Return the facts of requests that the policy does not refuse."""
    contacts, devices, records = _contacts(requests), _devices(requests), _records(requests)
    active = templates.find_active_of_many(
        _by_organization(
            (r.organization.id, r.message.template.name) for r in requests if r.message.template
        )
    )
    return [
        RequestFacts(
            now,
            contacts[request.organization.id],
            devices.get((request.organization.id, request.caller.test), {}),
            _record(request, records),
            active.get(request.organization.id, {}),
        )
        for request in requests
    ]


def _contacts(requests: Sequence[SendRequest]) -> dict[str, dict[str, ContactRecord]]:
    """Return the recipients' contacts by organization and id."""
    ids = _by_organization(
        (request.organization.id, recipient.contact_id)
        for request in requests
        for recipient in request.message.to
    )
    embedded = embedded_contacts(ids)
    return {
        organization_id: get_contacts(organization_id, contact_ids, embedded[organization_id])
        for organization_id, contact_ids in ids.items()
    }


def _devices(requests: Sequence[SendRequest]) -> dict[tuple[str, bool], dict[str, Devices]]:
    """Return the devices that a push reaches: by organization, and whether it is a TEST message;
    then by contact.
    """
    pushes = [request for request in requests if Channel.PUSH in request.channels]
    if not pushes:
        return {}
    devices = active_devices_of_many(
        _by_organization(
            (request.organization.id, recipient.contact_id)
            for request in pushes
            for recipient in request.message.to
        )
    )
    return {
        (organization_id, is_test): {
            contact_id: frozenset(
                (device.platform, device.app) for device in reached(records, test=is_test)
            )
            for contact_id, records in devices[organization_id].items()
        }
        for organization_id, is_test in {(r.organization.id, r.caller.test) for r in pushes}
    }


def _records(requests: Sequence[SendRequest]) -> dict[str, dict[str, Record]]:
    """Return the records that requests name, as they are now; templates may use them.

    One query for each organization: calls that are accepted together name none.
    """
    ids = _by_organization(
        (r.organization.id, r.message.context.record_id)
        for r in requests
        if r.message.context and r.message.context.record_id
    )
    return {
        organization_id: get_records(organization_id, record_ids)
        for organization_id, record_ids in ids.items()
    }


def _record(request: SendRequest, records: Mapping[str, Mapping[str, Record]]) -> Record | None:
    context = request.message.context
    if context is None or not context.record_id:
        return None
    return records[request.organization.id].get(context.record_id)


# --- variables ------------------------------------------------------------------------------------


class _Checks(NamedTuple):
    """The result of checking the variables of a draft."""

    problems: Sequence[Problems] = ()
    """Those of each recipient."""
    error: errors.ApiError | None = None
    """The error if they cannot be checked now."""


def _checked(drafts: Sequence[Draft], *, in_set: bool) -> list[_Checks]:
    """Check the variables of recipients against the schemas of their templates."""
    checks = [
        variable_checks.VariableCheck(
            d.request.organization.id,
            template.variables,
            d.request.message.variables_of(recipient.input),
        )
        for d in drafts
        for recipient in d.recipients
        for template in recipient.templates
        if template.variables
    ]
    run = variable_checks.check_quickly if in_set else variable_checks.check
    results = iter(run(checks))
    return [_checks_of(d, results) for d in drafts]


def _checks_of(draft: Draft, results: Iterator[Problems | None]) -> _Checks:
    """Take the results of a draft's checks from those of all drafts."""
    by_recipient: list[Problems] = []
    is_slow = False
    for recipient in draft.recipients:
        problems: Problems = []
        for template in recipient.templates:
            if template.variables:
                problems_of_template = next(results)
                is_slow = is_slow or problems_of_template is None
                problems += problems_of_template or []
        by_recipient.append(problems)
    if is_slow:
        error = variable_checks.budget_error(draft.request.organization.id) or SlowCheck()
        return _Checks(by_recipient, error)
    return _Checks(by_recipient)


# --- gates and accounts ---------------------------------------------------------------------------


def _options(drafts: Sequence[Draft]) -> list[dict[tuple[int, Channel], OptionFacts]]:
    """Return the facts about the channels of each draft's recipients."""
    choices = [
        (index, recipient, option)
        for index, d in enumerate(drafts)
        for recipient in d.recipients
        if recipient.error is None
        for option in recipient.options
    ]
    candidates = [
        _candidate(drafts[index].request, recipient, option) for index, recipient, option in choices
    ]
    facts: list[dict[tuple[int, Channel], OptionFacts]] = [{} for _ in drafts]
    for (index, recipient, option), gate in zip(choices, gates.check(candidates), strict=True):
        place = recipient.position, option.channel
        facts[index][place] = _option_facts(drafts[index].request, recipient, option, gate)
    return facts


def _candidate(request: SendRequest, recipient: DraftRecipient, option: Option) -> gates.Candidate:
    return gates.Candidate(
        request.organization.id,
        recipient.input.contact_id,
        option.channel,
        option.address,
        request.rules,
        test=request.caller.test,
    )


def _option_facts(
    request: SendRequest, recipient: DraftRecipient, option: Option, gate: GateResult
) -> OptionFacts:
    if gate.refusal:
        return OptionFacts(gate)
    accounts = provider_accounts.configured(
        request.policy,
        option.channel,
        option.address,
        devices=option.devices,
        test=request.caller.test,
    )
    if not accounts:
        return OptionFacts(gate)
    backlog = (
        provider_accounts.backlog(request.organization.id, option.channel, accounts, request.rules)
        if recipient.scheduled_for is None
        else None
    )
    return OptionFacts(gate, provider_accounts.expected(accounts), backlog)
