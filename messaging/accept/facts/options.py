"""Read the facts about the options that drafts leave open: gates and accounts."""

from collections.abc import Mapping
from typing import NamedTuple

from messaging.consent import gates
from messaging.delivery import accounts as provider_accounts
from messaging.domain.accounts.admission import Backlog
from messaging.domain.channels import Channel
from messaging.domain.gates import GateVerdict
from messaging.domain.planning import Draft, DraftRecipient, Option, OptionFacts, Outline
from messaging.policy.organization_policy import Account, Policy


def read_options(
    drafts: Mapping[int, Draft], policies: Mapping[str, Policy]
) -> dict[int, list[list[OptionFacts]]]:
    """Return the facts about the options of each draft's recipients, by the draft's key."""
    verdicts = iter(
        gates.check(
            [
                _candidate(draft.outline, recipient, option)
                for draft in drafts.values()
                for recipient in draft.recipients
                if recipient.refusal is None
                for option in recipient.options
            ]
        )
    )
    routes = _SetRoutes(policies)
    return {
        key: [
            []
            if recipient.refusal
            else [
                routes.facts_of(draft.outline, recipient, option, next(verdicts))
                for option in recipient.options
            ]
            for recipient in draft.recipients
        ]
        for key, draft in drafts.items()
    }


def _candidate(outline: Outline, recipient: DraftRecipient, option: Option) -> gates.Candidate:
    request = outline.request
    return gates.Candidate(
        request.organization.id,
        recipient.requested.contact_id,
        option.channel,
        option.address,
        outline.rules,
        test=request.is_test,
    )


class _Route(NamedTuple):
    """The accounts that take an address, and their backlog, if they have a rate."""

    accounts: list[Account]
    backlog: Backlog | None


class _SetRoutes:
    """The routes of a set: found once for all addresses, unless an account matches some."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        self._routes: dict[tuple[object, ...], _Route] = {}

    def facts_of(
        self, outline: Outline, recipient: DraftRecipient, option: Option, verdict: GateVerdict
    ) -> OptionFacts:
        """Return the facts about an option, with the verdict of the gates."""
        if verdict.refusal:
            return OptionFacts(verdict)
        accounts, backlog = self._route(outline, option, recipient.scheduled_for is None)
        if not accounts:
            return OptionFacts(verdict)
        return OptionFacts(verdict, provider_accounts.expected(accounts), backlog)

    def _route(self, outline: Outline, option: Option, is_due: bool) -> _Route:
        request = outline.request
        key = (request.organization.id, option.channel, request.is_test, outline.rules.name, is_due)
        route = self._routes.get(key)
        if route is None:
            route = self._find(outline, option, is_due)
            accounts = self._policies[request.organization.id].accounts
            if option.channel is not Channel.PUSH and not any(each.match for each in accounts):
                self._routes[key] = route
        return route

    def _find(self, outline: Outline, option: Option, is_due: bool) -> _Route:
        request, channel = outline.request, option.channel
        accounts = provider_accounts.configured(
            self._policies[request.organization.id],
            channel,
            option.address,
            devices=option.devices,
            test=request.is_test,
        )
        backlog = None
        if accounts and is_due:
            backlog = provider_accounts.backlog(
                request.organization.id, channel, accounts, outline.rules
            )
        return _Route(accounts, backlog)
