"""A request to send, and what its organization's policy makes of it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from messaging.domain.channels import Channel
from messaging.domain.planning.refusals import FieldProblem, RefusalCode, SendRefusal, invalid
from messaging.domain.policy import CategoryRules, Domain, SendingPolicy, unknown_category
from messaging.domain.sentences import sentence
from messaging.domain.timing import Schedule

Variables = Mapping[str, Any]
SmsSenderProblem = Callable[[str], str | None]
"""Why no SMS of the organization can show a sender's name; None if one can."""


class SendingOrganization(Protocol):
    """An organization, as far as its plans depend on it."""

    @property
    def id(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def locale_fallback(self) -> bool:
        """Return whether its texts fall back to less exact languages, and to its own."""
        ...

    @property
    def zone(self) -> str:
        """Return the name of its IANA zone."""
        ...


class RequestedRecipient(NamedTuple):
    """A recipient as the request names it, with the variables of its own."""

    contact_id: str
    variables: Variables


class RequestedTemplate(NamedTuple):
    """A template by name; without a language it is the recipient's."""

    name: str
    language: str | None


class SendRequest(NamedTuple):
    """A request to send, as far as its plan depends on it."""

    organization: SendingOrganization
    is_test: bool
    category: str
    may_send: bool
    """Whether the caller may send messages of the category."""
    channels: Sequence[Channel]
    """Those to try, in order; empty: the category's."""
    recipients: Sequence[RequestedRecipient]
    template: RequestedTemplate | None
    literal_channels: Collection[Channel]
    """Without a template: the channels that the request's own texts suit."""
    sender_domain: str | None
    sender_name: str
    record_id: str | None
    variables: Variables | None
    """Those for all recipients; None without a context."""
    schedule: Schedule | None

    def variables_of(self, recipient: RequestedRecipient) -> Variables:
        """Return a recipient's variables: those of all recipients, overridden by its own."""
        common = self.variables or {}
        return {**common, **recipient.variables} if recipient.variables else common


class Outline(NamedTuple):
    """A request as its organization's policy sees it."""

    request: SendRequest
    policy: SendingPolicy
    rules: CategoryRules
    channels: Sequence[Channel]
    sender: Domain | None
    sms_sender: str
    """The sender that an SMS shows; empty: the account's own."""
    warnings: Sequence[FieldProblem]
    """Accepted fields of the request that have no effect on some channel."""
    refusal: SendRefusal | None
    """The reason to refuse the request as a whole."""


def outline(
    request: SendRequest, policy: SendingPolicy, sms_sender_problem: SmsSenderProblem
) -> Outline:
    """Return a request as its organization's policy sees it."""
    rules = policy.categories.get(request.category)
    channels = request.channels or (rules.channel_order if rules else ())
    domain = request.sender_domain
    sender = policy.domains.get(domain) if domain else policy.default_domain
    name, problem = request.sender_name, None
    if not name or Channel.SMS not in channels or (problem := sms_sender_problem(name)):
        name = ""
    is_warning = problem is not None and list(channels) != [Channel.SMS]
    return Outline(
        request=request,
        policy=policy,
        rules=rules or next(iter(policy.categories.values())),
        channels=channels,
        sender=sender,
        sms_sender=name,
        warnings=(_sender_warning(problem),) if problem and is_warning else (),
        refusal=_category_refusal(request, rules, policy)
        or _sender_refusal(domain, sender, channels)
        or _duplicate(request.recipients)
        or (_sms_sender_refusal(problem) if problem and not is_warning else None),
    )


def _category_refusal(
    request: SendRequest, rules: CategoryRules | None, policy: SendingPolicy
) -> SendRefusal | None:
    if rules is None:
        return invalid("category", unknown_category(request.category, policy.categories))
    if not request.may_send:
        return SendRefusal(RefusalCode.FORBIDDEN, permission=f"SEND:{rules.name}")
    return None


def _sender_refusal(
    domain: str | None, sender: Domain | None, channels: Sequence[Channel]
) -> SendRefusal | None:
    if sender is not None:
        return None
    if domain:
        return invalid("from.domain", sentence("not a verified sender domain"))
    if len(channels) == 1 and channels[0] is Channel.EMAIL:
        return invalid("from.domain", sentence("the organization has no verified sender domain"))
    return None


def _duplicate(recipients: Sequence[RequestedRecipient]) -> SendRefusal | None:
    """Return the refusal that names a contact that is twice among the recipients."""
    if len(recipients) == 1:
        return None
    seen: set[str] = set()
    for position, recipient in enumerate(recipients):
        if recipient.contact_id in seen:
            return invalid(f"to[{position}].contactId", sentence("the same contact twice"))
        seen.add(recipient.contact_id)
    return None


def _sender_warning(problem: str) -> FieldProblem:
    return FieldProblem(
        "from.name",
        sentence(
            "%(problem)s. Recipients of the SMS see the account's own sender.", problem=problem
        ),
    )


def _sms_sender_refusal(problem: str) -> SendRefusal:
    return invalid(
        "from.name", sentence("%(problem)s. Choose such a name, or leave it out.", problem=problem)
    )
