"""Read the facts from which the plans of a set of requests follow, in a fixed number of statements.

All facts of a kind are read once for all requests, of one organization or of several. First those
that a request names; then, of the channels that its draft leaves open, the gates and accounts. So a
request that is refused before costs no statement for them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from messaging.accept.facts.options import read_options
from messaging.accept.facts.sources import Sources, read_sources
from messaging.accept.facts.variables import read_problems
from messaging.accept.send_request import CallerMessage, outline
from messaging.content import compose
from messaging.domain.channels import Channel
from messaging.domain.planning import Outline, PlanFacts, PlannedContact, RequestFacts, draft_each
from messaging.policy import organization_policy
from push.active_devices import reached
from rme.core import errors
from rme.core.db import clock
from rme.core.zones import is_zone


class SetFacts(NamedTuple):
    """The facts about the requests of a set."""

    now: datetime
    requests: Sequence[PlanFacts | errors.ApiError]
    """Those of each request; or an error, if its variables can't be checked now."""
    sources: Sources


def read_facts(messages: Sequence[CallerMessage], *, in_set: bool = False) -> SetFacts:
    """Read the facts about messages, in order.

    `in_set`: other calls wait for these, so a message whose variables take long to check has the
    error SlowCheck. Raises RateLimited.
    """
    now = clock.now()
    policies = organization_policy.of_many(list({m.caller.organization.id for m in messages}))
    outlines = [
        outline(caller, policies[caller.organization.id], message) for caller, message in messages
    ]
    sources = read_sources([each for each in outlines if each.refusal is None])
    drafts = draft_each(_with_facts(outlines, sources), now)
    problems = read_problems(drafts, in_set=in_set)
    options = read_options(
        {
            index: draft
            for index, draft in enumerate(drafts)
            if draft.refusal is None and index not in problems
        },
        policies,
    )
    requests: list[PlanFacts | errors.ApiError] = []
    for index, draft in enumerate(drafts):
        problem = problems.get(index, ())
        if isinstance(problem, errors.ApiError):
            requests.append(problem)
        else:
            requests.append(PlanFacts(draft, problem, options.get(index, ())))
    return SetFacts(now, requests, sources)


def _with_facts(
    outlines: Sequence[Outline], sources: Sources
) -> list[tuple[Outline, RequestFacts | None]]:
    """Return each request with the facts for its draft; None if the policy refuses the request."""
    contacts = _SetContacts(sources)
    pairs: list[tuple[Outline, RequestFacts | None]] = []
    for each in outlines:
        request = each.request
        organization_id = request.organization.id
        facts = None
        if each.refusal is None:
            record_id = request.record_id
            facts = RequestFacts(
                contacts.of(each),
                sources.records[organization_id].get(record_id) if record_id else None,
                sources.templates.get(organization_id, {}),
            )
        pairs.append((each, facts))
    return pairs


class _SetContacts:
    """The recipients of a set, each converted once for requests with the same kinds of channels."""

    def __init__(self, sources: Sources) -> None:
        self._facts = sources
        self._contacts: defaultdict[tuple[object, ...], dict[str, PlannedContact]] = defaultdict(
            dict
        )

    def of(self, outline: Outline) -> Mapping[str, PlannedContact]:
        """Return the contacts that exist of a request's recipients, and maybe others."""
        request, channels = outline.request, outline.channels
        organization_id = request.organization.id
        email, sms = Channel.EMAIL in channels, Channel.SMS in channels
        push = Channel.PUSH in channels
        contacts = self._contacts[organization_id, request.is_test, email, sms, push]
        records = self._facts.contacts[organization_id]
        for recipient in request.recipients:
            contact_id = recipient.contact_id
            if contact_id not in contacts and (record := records.get(contact_id)):
                contacts[contact_id] = PlannedContact(
                    record.id,
                    record.language,
                    record.zone if is_zone(record.zone) else request.organization.zone,
                    compose.address_of(record, Channel.EMAIL) if email else None,
                    compose.address_of(record, Channel.SMS) if sms else None,
                    self._devices(outline, record.id) if push else frozenset(),
                )
        return contacts

    def _devices(self, outline: Outline, contact_id: str) -> frozenset[tuple[str, str]]:
        devices = self._facts.devices[outline.request.organization.id].get(contact_id, ())
        is_test = outline.request.is_test
        return frozenset((each.platform, each.app) for each in reached(devices, test=is_test))
