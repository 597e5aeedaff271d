"""A request to send, as its organization's policy sees it. A function of values."""

from collections.abc import Sequence
from typing import NamedTuple

from messaging.accept.requests import MessageInput, duplicates
from messaging.domain.channels import Channel
from messaging.domain.policy import CategoryRules, Domain
from messaging.policy.organization_policy import Policy
from rme.core import errors
from rme.core.provider import sms_sender
from rme.tenants.oauth.authentication import Caller, OrganizationRecord
from rme.tenants.oauth.permissions import forbidden


class CallerMessage(NamedTuple):
    """A message to plan, and its caller."""

    caller: Caller
    message: MessageInput


class SendRequest(NamedTuple):
    """A message, and what its organization's policy says of it."""

    caller: Caller
    policy: Policy
    message: MessageInput
    rules: CategoryRules
    channels: Sequence[Channel]
    sender: Domain | None
    sms_sender: str
    """The sender that an SMS shows; empty: the account's own."""
    warnings: Sequence[errors.Detail]
    """Accepted fields of the request that have no effect on some channel."""
    error: errors.ApiError | None
    """The reason to refuse the request as a whole."""

    @property
    def organization(self) -> OrganizationRecord:
        """Return the organization of its caller."""
        return self.caller.organization


class _SmsSender(NamedTuple):
    """The sender that an SMS shows, and the request's warning or error about it."""

    name: str = ""
    warning: errors.Detail | None = None
    error: errors.ApiError | None = None


_ACCOUNTS_SENDER = _SmsSender()


def outline(caller: Caller, policy: Policy, message: MessageInput) -> SendRequest:
    """Return a request as its organization's policy sees it."""
    rules = policy.categories.get(message.category)
    channels = _channels(message, rules)
    domain = message.from_.domain if message.from_ else None
    sender = policy.domains.get(domain) if domain else policy.default_domain
    from_sms = _sms_sender(caller, policy, message, channels)
    permission = rules is None or caller.grants.may_send(rules.name)
    error: errors.ApiError | None
    if rules is None:
        error = errors.InvalidPayload.at("category", "no such category")
    elif not permission:
        error = forbidden(f"SEND:{rules.name}")
    else:
        error = _sender_error(domain, sender, channels) or duplicates(message) or from_sms.error
    return SendRequest(
        caller=caller,
        policy=policy,
        message=message,
        rules=rules or next(iter(policy.categories.values())),
        channels=channels,
        sender=sender,
        sms_sender=from_sms.name,
        warnings=(from_sms.warning,) if from_sms.warning else (),
        error=error,
    )


def _channels(message: MessageInput, rules: CategoryRules | None) -> list[Channel]:
    if message.channels:
        return [Channel(name) for name in message.channels]
    if message.channel and message.channel != "AUTO":
        return [Channel(message.channel)]
    return list(rules.channel_order) if rules else []


def _sender_error(
    domain: str | None, sender: Domain | None, channels: Sequence[Channel]
) -> errors.ApiError | None:
    if sender is not None:
        return None
    if domain:
        return errors.InvalidPayload.at("from.domain", "not a verified sender domain")
    if channels == [Channel.EMAIL]:
        return errors.InvalidPayload.at(
            "from.domain", "the organization has no verified sender domain"
        )
    return None


def _sms_sender(
    caller: Caller, policy: Policy, message: MessageInput, channels: Sequence[Channel]
) -> _SmsSender:
    """Return the sender of an SMS. If no SMS can show the name, it is an error if SMS is the only
    channel, else a warning.
    """
    name = (message.from_ and message.from_.name) or ""
    if not name or Channel.SMS not in channels:
        return _ACCOUNTS_SENDER
    problem = _sms_sender_problem(caller, policy, name)
    if problem is None:
        return _SmsSender(name)
    if channels != [Channel.SMS]:
        text = f"{problem}. Recipients of the SMS see the account's own sender."
        return _SmsSender(warning=errors.Detail("from.name", text))
    text = f"{problem}. Choose such a name, or leave it out."
    return _SmsSender(error=errors.InvalidPayload.at("from.name", text))


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
