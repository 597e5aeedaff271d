"""Whether a person can be reached, by channel and category, and if not, why.

Asked of the gates, the policy and the routing that accept and delivery ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from messaging.consent import gates
from messaging.console import wording
from messaging.console.access import Viewer
from messaging.content import compose
from messaging.delivery import accounts
from messaging.domain.channels import Channel
from messaging.domain.policy import CategoryRules
from messaging.domain.timing import quiet_until
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Policy
from push.active_devices import DeviceRecord, active_devices
from rme.core.db import clock
from rme.core.zones import zone
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord


class Obstacle(Enum):
    """What keeps a channel as a whole from a person."""

    ADDRESS = auto()
    DEVICE = auto()
    ACCOUNT = auto()


@dataclass(frozen=True, slots=True)
class CategoryReach:
    """Whether messages of a category reach a person on a channel. `refusal` says why not."""

    category: str
    reached: bool
    refusal: str = ""
    wait_reason: str = ""
    """Why they would wait before they leave."""
    is_paused: bool = False
    code: str = ""
    """The gate's refusal."""
    entry: str | None = None
    """The id of the suppression or consent entry that decided."""


@dataclass(frozen=True, slots=True)
class ChannelReach:
    """A channel to a person. `refusal` is the sentence why nothing can be sent there, or empty."""

    channel: str
    address: str
    refusal: str
    categories: Sequence[CategoryReach] = ()
    obstacle: Obstacle | None = None
    """What `refusal` means."""

    @property
    def label(self) -> str:
        return wording.channel(self.channel)

    @property
    def reached(self) -> bool:
        """Return whether at least one category reaches the person."""
        return any(each.reached for each in self.categories)


def of(viewer: Viewer, contact: ContactRecord) -> list[ChannelReach]:
    """Return a person's channels; a few statements, however many categories there are."""
    organization_id = viewer.organization_id
    person = _ReachablePerson(
        organization=viewer.organization,
        policy=organization_policy.of(organization_id),
        contact=contact,
        devices=active_devices(organization_id, [contact.id]).get(contact.id, ()),
        paused=gates.pauses_in_force(organization_id),
    )
    return [_channel(viewer, person, channel) for channel in Channel]


@dataclass(frozen=True, slots=True)
class _ReachablePerson:
    """A person, with what the organization has decided."""

    organization: OrganizationRecord
    policy: Policy
    contact: ContactRecord
    devices: Sequence[DeviceRecord]
    paused: gates.Pauses


def _channel(viewer: Viewer, person: _ReachablePerson, channel: Channel) -> ChannelReach:
    address = compose.address_of(person.contact, channel)
    devices = person.devices if channel is Channel.PUSH else ()
    target = viewer.shown(address)
    if devices:
        words = ngettext("%(number)s device", "%(number)s devices", len(devices))
        target = words % {"number": len(devices)}
    if not address and not devices:
        if channel is Channel.PUSH:
            return ChannelReach(channel, target, _("No device."), obstacle=Obstacle.DEVICE)
        return ChannelReach(channel, target, _("No address."), obstacle=Obstacle.ADDRESS)
    kinds = frozenset((each.platform, each.app) for each in devices)
    if not accounts.configured(person.policy, channel, address, devices=kinds, test=False):
        refusal = _("No provider account for the channel.")
        return ChannelReach(channel, target, refusal, obstacle=Obstacle.ACCOUNT)
    return ChannelReach(channel, target, "", _categories(person, channel, address))


def of_category(
    viewer: Viewer, contact: ContactRecord, channel: Channel, address: str | None, category: str
) -> CategoryReach:
    """Return whether messages of one category reach a person, or an address that no contact has."""
    organization_id = viewer.organization_id
    policy = organization_policy.of(organization_id)
    person = _ReachablePerson(
        viewer.organization, policy, contact, (), gates.pauses_in_force(organization_id)
    )
    return _reach(person, channel, address, [policy.rules(category)])[0]


def _categories(
    person: _ReachablePerson, channel: Channel, address: str | None
) -> list[CategoryReach]:
    """Return what the gates answer for each category, by one check."""
    rules = [each for _, each in sorted(person.policy.categories.items())]
    return _reach(person, channel, address, rules)


def _reach(
    person: _ReachablePerson, channel: Channel, address: str | None, rules: Sequence[CategoryRules]
) -> list[CategoryReach]:
    organization_id, contact_id = person.organization.id, person.contact.id
    candidates = [
        gates.Candidate(organization_id, contact_id, channel, address, each) for each in rules
    ]
    return [
        CategoryReach(
            category=each.name,
            reached=result.refusal is None,
            refusal=wording.reason(result.refusal),
            wait_reason=_wait_reason(person, channel, each),
            is_paused=person.paused.cover(channel, each.name, None),
            code=result.refusal or "",
            entry=result.entry,
        )
        for each, result in zip(rules, gates.check(candidates), strict=True)
    ]


def _wait_reason(person: _ReachablePerson, channel: Channel, rules: CategoryRules) -> str:
    """Return why a message would wait: a pause or the person's quiet hours."""
    if person.paused.cover(channel, rules.name, None):
        return _("sending is paused")
    hours = person.policy.quiet(channel, rules)
    local_zone = zone(person.contact.zone, person.organization.zone)
    until = quiet_until(clock.now(), hours, local_zone) if hours else None
    if not until:
        return ""
    return _("quiet hours until %(time)s") % {"time": f"{until.astimezone(local_zone):%H:%M %Z}"}
