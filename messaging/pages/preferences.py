"""What a recipient may still be sent, and what becomes of the recipient's own changes.

Whoever holds a message's link acts as that person. Every change is an entry of the consent ledger.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import transaction
from django.db.models import Q, QuerySet

from messaging.consent import ledger
from messaging.consent.gates import current_consent
from messaging.content import compose
from messaging.content.links import BadLink, Confirmation, PreferenceLink
from messaging.feedback import receipts
from messaging.feedback.receipts import Receipt
from messaging.models import ConsentEntry, SendingRules, Suppression
from messaging.models.statuses import EventType
from messaging.pages import confirmation_mail
from messaging.pages.wording import Wording
from messaging.policy import organization_policy
from push.devices import active_devices
from rme.core import ids
from rme.core.channels import ALL, Channel
from rme.core.db import clock
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants import organizations
from rme.tenants.models import Organization
from rme.tenants.organizations import OrganizationRecord

RECIPIENT = "recipient"
"""Who recorded what was decided on these pages."""
LIFTABLE = (
    Suppression.Reason.STOP,
    Suppression.Reason.COMPLAINT,
    Suppression.Reason.UNSUBSCRIBE,
)
"""A person's own word, which the same person may take back."""

Pair = tuple[str, str]
"""A category and a channel."""
Evidence = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a person may be sent, or not. `consented`: nothing but a suppression bars."""

    category: str
    channel: Channel
    on: bool
    consented: bool
    opt_in: bool

    @property
    def pair(self) -> Pair:
        return self.category, self.channel


@dataclass(frozen=True, slots=True)
class Person:
    """Whose preferences a link opens, and the addresses there are."""

    link: PreferenceLink
    organization: OrganizationRecord
    contact: ContactRecord
    addresses: Mapping[Channel, str] = field(repr=False)
    """By reachable channel; push has none, so an empty text."""


class Result(StrEnum):
    """What became of a change: the page says it."""

    SAVED = "saved"
    UNCHANGED = "unchanged"
    STOPPED = "stopped"
    MAILED = "mailed"
    UNMAILED = "unmailed"


def person(link: PreferenceLink) -> Person:
    """Find the person of a link; two queries. Raises BadLink if there is nobody any more."""
    try:
        organization = organizations.get(link.organization_id)
    except Organization.DoesNotExist as error:
        raise BadLink from error
    contact = get_contacts(organization.id, [link.contact_id]).get(link.contact_id)
    if contact is None:
        raise BadLink
    found = {channel: compose.address_of(contact, channel) for channel in Channel}
    addresses = {channel: address for channel, address in found.items() if address}
    if active_devices(organization.id, [contact.id]):
        addresses[Channel.PUSH] = ""
    return Person(link, organization, contact, addresses)


def choices(who: Person) -> list[Choice]:
    """Give what the person may be sent now, news first; two queries, and the policy."""
    categories = organization_policy.of(who.organization.id).categories
    decided = current_consent.read(
        who.organization.id, [who.contact.id], list(who.addresses), list(categories)
    )
    barred = _barred(who)
    found = []
    for rules in sorted(categories.values(), key=lambda rules: (not rules.opt_in, rules.name)):
        for channel in who.addresses:
            consented = decided.allows(who.contact.id, channel, rules.name, opt_in=rules.opt_in)
            on = consented and channel not in barred
            found.append(Choice(rules.name, channel, on, consented, rules.opt_in))
    return found


def _barred(who: Person) -> set[Channel]:
    """Give the channels that the person's own word closed, by the contact or by its address."""
    listed = list(_barring(who, who.addresses).values_list("channel", "address"))
    return {
        channel
        for channel, own in who.addresses.items()
        for listed_channel, address in listed
        if listed_channel in (channel, ALL) and address in ("", own)
    }


def _barring(who: Person, channels: Iterable[Channel]) -> "QuerySet[Suppression]":
    named = Q(contact_id=who.contact.id, channel__in=[*channels, ALL])
    for channel in channels:
        if address := who.addresses[channel]:
            named |= Q(address=address, channel__in=(channel, ALL))
    alive = Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now())
    return Suppression.objects.filter(
        named, alive, organization_id=who.organization.id, reason__in=LIFTABLE
    )


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person saw switched on or off, and what of it is to be on."""

    seen: Mapping[Pair, bool]
    on: frozenset[Pair]

    def turned_on(self, pair: Pair) -> bool:
        return pair in self.on and self.seen.get(pair) is False

    def turned_off(self, pair: Pair) -> bool:
        return pair not in self.on and self.seen.get(pair) is True


def change(
    who: Person, wish: Wish, evidence: Evidence, *, wording: Wording, request_id: str
) -> Result:
    """Record what the person changed, beginning from what the page showed.

    Opting in lifts what the person's own word suppressed; what then would be sent though the page
    showed it as off is recorded as objected to. With double opt-in, email that needs consent is
    on only once it was confirmed.
    """
    shown = choices(who)
    asked = [choice for choice in shown if wish.turned_on(choice.pair) and not choice.on]
    refused = {c.pair for c in shown if wish.turned_off(c.pair) and c.consented}
    pending = [c for c in asked if c.opt_in and c.channel is Channel.EMAIL and _doubly(who)]
    granted = {choice.pair for choice in asked if choice not in pending}
    with transaction.atomic():
        opened = _lift(who, {choice.channel for choice in asked})
        hidden = {c.pair for c in shown if c.consented and not c.on and c.channel in opened}
        refused |= hidden - granted
        decided = [(pair, ConsentEntry.Status.OPTED_OUT) for pair in sorted(refused)]
        decided += [(pair, ConsentEntry.Status.OPTED_IN) for pair in sorted(granted)]
        _record(who, decided, ConsentEntry.Source.PREFERENCE_PAGE, evidence)
    if (who.link.category, who.link.channel) in refused:
        _tell_message(who.link)
    if pending:
        categories = [choice.category for choice in pending]
        sent = confirmation_mail.send(
            who.organization,
            Confirmation(who.link, tuple(categories)),
            wording=wording,
            request_id=request_id,
        )
        return Result.MAILED if sent else Result.UNMAILED
    return Result.SAVED if decided else Result.UNCHANGED


def _doubly(who: Person) -> bool:
    return SendingRules.objects.filter(
        organization_id=who.organization.id, double_opt_in=True
    ).exists()


def _lift(who: Person, channels: set[Channel]) -> set[Channel]:
    """Lift what the person's own word closed on channels; give all channels that this opened."""
    if not channels or not (before := _barred(who)):
        return set()
    _barring(who, channels).delete()
    return before - _barred(who)


def _record(
    who: Person,
    decided: Sequence[tuple[Pair, str]],
    source: str,
    evidence: Evidence,
) -> None:
    ledger.record(
        who.organization.id,
        [
            ledger.ConsentDecision(
                contact_id=who.contact.id,
                channel=channel,
                category=category,
                status=status,
                source=source,
                occurred_at=None,
                evidence=evidence,
                recorded_by=RECIPIENT,
            )
            for (category, channel), status in decided
        ],
    )


def stop(who: Person, evidence: Evidence) -> Result:
    """Record that the person wants nothing any more, on any channel."""
    everything = ((ALL, ALL), ConsentEntry.Status.OPTED_OUT)
    _record(who, [everything], ConsentEntry.Source.PREFERENCE_PAGE, evidence)
    _tell_message(who.link)
    return Result.STOPPED


def unsubscribe(who: Person, source: str, evidence: Evidence) -> None:
    """Record, once, that the person wants no more of the message's category on its channel."""
    link = who.link
    decided = current_consent.read(
        link.organization_id, [link.contact_id], [link.channel], [link.category]
    )
    if decided.opted_out(link.contact_id, link.channel, link.category):
        return
    pair = (link.category, link.channel)
    _record(who, [(pair, ConsentEntry.Status.OPTED_OUT)], source, evidence)
    _tell_message(who.link)


def _tell_message(link: PreferenceLink) -> None:
    """Add to the message that led here that its recipient unsubscribed."""
    delivery_id = ids.parse(link.delivery_id)
    if delivery_id:
        receipts.apply([Receipt(delivery_id, EventType.UNSUBSCRIBED)])


def confirm(who: Person, categories: Sequence[str], evidence: Evidence) -> None:
    """Record what the person confirmed by the link of a mail; once, however often it is sent."""
    decided = [
        (choice.pair, ConsentEntry.Status.OPTED_IN)
        for choice in choices(who)
        if choice.channel is Channel.EMAIL
        and choice.category in categories
        and not choice.consented
    ]
    _record(who, decided, ConsentEntry.Source.DOUBLE_OPT_IN, evidence)
