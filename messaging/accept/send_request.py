"""From the checked body of a request to the value on which plans are decided."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from messaging.accept.requests import AtSchedule, LocalSchedule, MessageInput, OrgSchedule
from messaging.domain import planning
from messaging.domain.channels import Channel
from messaging.domain.planning import Outline, RequestedRecipient, RequestedTemplate, SendRequest
from messaging.domain.timing import FixedTime, LocalTime, OrganizationTime, Schedule
from messaging.policy.organization_policy import Policy
from rme.core.provider import sms_sender
from rme.tenants.oauth.authentication import Caller


class CallerMessage(NamedTuple):
    """A message to plan, and its caller."""

    caller: Caller
    message: MessageInput


_CHANNELS: dict[str, Sequence[Channel]] = {
    "AUTO": (),
    **{channel.value: (channel,) for channel in Channel},
}
"""By the `channel` of a request."""


def outline(caller: Caller, policy: Policy, message: MessageInput) -> Outline:
    """Return a request as its organization's policy sees it."""
    return planning.outline(
        request_of(caller, message), policy, partial(_sms_sender_problem, caller, policy)
    )


def request_of(caller: Caller, message: MessageInput) -> SendRequest:
    """Return the request of a checked body."""
    template, content, sender = message.template, message.content, message.from_
    context = message.context
    return SendRequest(
        organization=caller.organization,
        is_test=caller.test,
        category=message.category,
        may_send=caller.grants.may_send(message.category),
        channels=[Channel(name) for name in message.channels]
        if message.channels
        else _CHANNELS[message.channel or "AUTO"],
        recipients=[RequestedRecipient(each.contact_id, each.variables) for each in message.to],
        template=RequestedTemplate(template.name, template.language) if template else None,
        literal_channels=[each for each in Channel if content.suits(each)] if content else (),
        sender_domain=sender.domain if sender else None,
        sender_name=(sender and sender.name) or "",
        record_id=context.record_id if context else None,
        variables=context.variables if context else None,
        schedule=_schedule(message.schedule) if message.schedule else None,
    )


def _schedule(schedule: LocalSchedule | OrgSchedule | AtSchedule) -> Schedule:
    match schedule:
        case LocalSchedule(time=clock, date=day):
            return LocalTime(clock, day)
        case OrgSchedule(time=clock, date=day):
            return OrganizationTime(clock, day)
        case AtSchedule(at=moment):
            return FixedTime(moment)


def _sms_sender_problem(caller: Caller, policy: Policy, name: str) -> str | None:
    """Return why no SMS of an organization can show a sender's name; None if one can."""
    if not sms_sender.is_valid(name):
        return sms_sender.RULE
    if caller.test or name.isascii():
        return None
    providers = [
        account.provider
        for account in policy.accounts
        if account.channel is Channel.SMS and account.provider and not account.draining
    ]
    can_show = any(provider.shows_sender(name) for provider in providers) or not providers
    return None if can_show else sms_sender.ASCII_RULE
