"""Reading a recipient's preferences: who a link belongs to, and which messages are allowed.

The holder of a message's link acts as its recipient.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from messaging.content import compose
from messaging.domain.channels import ALL, Channel
from messaging.domain.policy import CategoryRules
from messaging.links import BadLink, PreferenceLink, PreviewLink
from messaging.models import Delivery, Suppression
from messaging.policy import organization_policy
from messaging.store.gates import current_consent
from push.active_devices import active_devices
from rme.core import ids
from rme.core.addresses import phone_spellings
from rme.core.db import clock
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants import organizations
from rme.tenants.models import Organization
from rme.tenants.organizations import OrganizationRecord

LIFTABLE = (Suppression.Reason.STOP, Suppression.Reason.COMPLAINT, Suppression.Reason.UNSUBSCRIBE)
"""Reasons of suppressions that the recipient caused, and may therefore lift."""

CategoryChannel = tuple[str, str]
"""A category and a channel."""


@dataclass(frozen=True, slots=True)
class PreferenceChoice:
    """A category on a channel, and whether the recipient gets it.

    `consented`: consent allows it, whether or not a suppression forbids it. `opt_in`: the category
    needs consent.
    """

    category: str
    channel: Channel
    on: bool
    consented: bool
    opt_in: bool

    @property
    def key(self) -> CategoryChannel:
        return self.category, self.channel


@dataclass(frozen=True, slots=True)
class LinkRecipient:
    """The recipient whose preferences a link opens."""

    link: PreferenceLink
    organization: OrganizationRecord
    contact: ContactRecord
    addresses: dict[Channel, str] = field(repr=False)
    """The address of each reachable channel; empty for push, which has none."""


@dataclass(frozen=True, slots=True)
class PreviewRecipient:
    """The stand-in for a recipient on the page of a preview link."""

    link: PreviewLink
    organization: OrganizationRecord


def find_recipient(link: PreferenceLink) -> LinkRecipient:
    """Return the recipient of a link; two queries. Raises BadLink if neither the contact nor the
    message's address is known, and the errors of `organizations.require_served`.

    A contact that was merged into another one no longer exists, but its mailbox does.
    """
    organization = _organization(link.organization_id)
    contact = get_contacts(organization.id, [link.contact_id]).get(link.contact_id)
    if contact is None:
        if not (sent_to := _sent_to(link)):
            raise BadLink
        stand_in = ContactRecord(link.contact_id)
        return LinkRecipient(link, organization, stand_in, sent_to)
    address_by_channel = {channel: compose.address_of(contact, channel) for channel in Channel}
    addresses = {channel: address for channel, address in address_by_channel.items() if address}
    if active_devices(organization.id, [contact.id]):
        addresses[Channel.PUSH] = ""
    return LinkRecipient(link, organization, contact, addresses)


def find_preview(link: PreviewLink) -> PreviewRecipient:
    """Return the stand-in for the recipient of a preview link; raises as `find_recipient`."""
    return PreviewRecipient(link, _organization(link.organization_id))


def _organization(organization_id: str) -> OrganizationRecord:
    organizations.require_served(organization_id)
    try:
        return organizations.get(organization_id)
    except Organization.DoesNotExist as error:
        raise BadLink from error


def preview_choices(recipient: PreviewRecipient) -> list[PreferenceChoice]:
    """Return the choices of somebody who is reachable on each channel and hasn't decided yet."""
    return [
        PreferenceChoice(rules.name, channel, not rules.opt_in, not rules.opt_in, rules.opt_in)
        for rules in _rules(recipient.organization.id)
        for channel in Channel
    ]


def _rules(organization_id: str) -> list[CategoryRules]:
    """Return the rules of all categories, opt-in categories first."""
    categories = organization_policy.of(organization_id).categories
    return sorted(categories.values(), key=lambda rules: (not rules.opt_in, rules.name))


def choices(recipient: LinkRecipient) -> list[PreferenceChoice]:
    """Return what the recipient gets now, opt-in categories first; two queries, and the policy."""
    all_rules = _rules(recipient.organization.id)
    consent = current_consent.read(
        recipient.organization.id,
        [recipient.contact.id],
        list(recipient.addresses),
        [rules.name for rules in all_rules],
        list(filter(None, recipient.addresses.values())),
    )
    suppressed = suppressed_channels(recipient)
    all_choices = []
    for rules in all_rules:
        for channel, address in recipient.addresses.items():
            consented = consent.allows(
                recipient.contact.id, channel, rules.name, opt_in=rules.opt_in, address=address
            )
            on = consented and channel not in suppressed
            all_choices.append(PreferenceChoice(rules.name, channel, on, consented, rules.opt_in))
    return all_choices


def objecting_addresses(recipient: LinkRecipient) -> dict[str, str]:
    """Return the addresses of a link's holder by channel; one query.

    The message's address replaces the contact's, which may have changed since.
    """
    addresses = recipient.addresses | _sent_to(recipient.link)
    return {str(channel): address for channel, address in addresses.items()}


def _sent_to(link: PreferenceLink) -> dict[Channel, str]:
    """Return the channel and address that a link's message went to; empty if unknown."""
    delivery_id = ids.parse(link.delivery_id)
    if delivery_id is None:
        return {}
    sent = Delivery.objects.filter(
        organization_id=link.organization_id, pk=delivery_id, contact_id=link.contact_id
    )
    rows = sent.values_list("channel", "address")
    return {Channel(channel): address for channel, address in rows if address}


def suppressed_channels(recipient: LinkRecipient) -> set[Channel]:
    """Return the channels that the recipient closed, for the contact or for its address."""
    rows = liftable_suppressions(recipient, recipient.addresses)
    suppressed = list(rows.values_list("channel", "address"))
    return {
        channel
        for channel, own_address in recipient.addresses.items()
        for suppressed_channel, address in suppressed
        if suppressed_channel in (channel, ALL) and address in ("", *phone_spellings(own_address))
    }


def liftable_suppressions(
    recipient: LinkRecipient, channels: Iterable[Channel]
) -> QuerySet[Suppression]:
    """Select the recipient's own suppressions on channels that have not expired."""
    matches = Q(contact_id=recipient.contact.id, channel__in=[*channels, ALL])
    for channel in channels:
        if address := recipient.addresses[channel]:
            matches |= Q(address__in=phone_spellings(address), channel__in=(channel, ALL))
    not_expired = Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now())
    return Suppression.objects.filter(
        matches, not_expired, organization_id=recipient.organization.id, reason__in=LIFTABLE
    )
