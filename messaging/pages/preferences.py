"""Reading a recipient's preferences: who a link belongs to, and which messages are allowed.

The holder of a message's link acts as its recipient.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from messaging.consent.gates import current_consent
from messaging.content import compose
from messaging.content.links import BadLink, PreferenceLink
from messaging.models import Suppression
from messaging.policy import organization_policy
from push.devices import active_devices
from rme.core.channels import ALL, Channel
from rme.core.db import clock
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants import cells, organizations
from rme.tenants.models import Organization
from rme.tenants.organizations import OrganizationRecord

LIFTABLE = (Suppression.Reason.STOP, Suppression.Reason.COMPLAINT, Suppression.Reason.UNSUBSCRIBE)
"""Reasons of suppressions that the recipient caused, and may therefore lift."""

CategoryChannel = tuple[str, str]
"""A category and a channel."""


@dataclass(frozen=True, slots=True)
class Choice:
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
    addresses: Mapping[Channel, str] = field(repr=False)
    """The address of each reachable channel; empty for push, which has none."""


def find_recipient(link: PreferenceLink) -> LinkRecipient:
    """Return the recipient of a link; two queries. Raises BadLink if the contact is gone, or what
    `cells.require_here` raises.
    """
    cells.require_here(link.organization_id)
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
    return LinkRecipient(link, organization, contact, addresses)


def choices(recipient: LinkRecipient) -> list[Choice]:
    """Return what the recipient gets now, opt-in categories first; two queries, and the policy."""
    categories = organization_policy.of(recipient.organization.id).categories
    consent = current_consent.read(
        recipient.organization.id,
        [recipient.contact.id],
        list(recipient.addresses),
        list(categories),
    )
    suppressed = suppressed_channels(recipient)
    found = []
    for rules in sorted(categories.values(), key=lambda rules: (not rules.opt_in, rules.name)):
        for channel in recipient.addresses:
            consented = consent.allows(
                recipient.contact.id, channel, rules.name, opt_in=rules.opt_in
            )
            on = consented and channel not in suppressed
            found.append(Choice(rules.name, channel, on, consented, rules.opt_in))
    return found


def suppressed_channels(recipient: LinkRecipient) -> set[Channel]:
    """Return the channels that the recipient closed, for the contact or for its address."""
    rows = liftable_suppressions(recipient, recipient.addresses)
    found = list(rows.values_list("channel", "address"))
    return {
        channel
        for channel, own_address in recipient.addresses.items()
        for suppressed_channel, address in found
        if suppressed_channel in (channel, ALL) and address in ("", own_address)
    }


def liftable_suppressions(
    recipient: LinkRecipient, channels: Iterable[Channel]
) -> QuerySet[Suppression]:
    """Select the recipient's own suppressions on channels that have not expired."""
    matches = Q(contact_id=recipient.contact.id, channel__in=[*channels, ALL])
    for channel in channels:
        if address := recipient.addresses[channel]:
            matches |= Q(address=address, channel__in=(channel, ALL))
    not_expired = Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now())
    return Suppression.objects.filter(
        matches, not_expired, organization_id=recipient.organization.id, reason__in=LIFTABLE
    )
