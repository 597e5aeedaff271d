"""Getting claimed deliveries ready to be sent: where to, by which accounts, and with what text."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic

import structlog
from django.db import DatabaseError, InterfaceError

from messaging.content import compose, rendering, templates
from messaging.delivery import render_limit
from messaging.delivery.accounts import routing
from messaging.delivery.claims import Claim, Claimed
from messaging.delivery.next_steps import Sending
from messaging.models.statuses import Status
from messaging.policy.organization_policy import Account, Policy
from push.devices import DeviceRecord, active_devices
from rme.core import errors
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.provider import Content, Push
from rme.core.zones import quiet_until, zone
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants import organizations

log = structlog.get_logger(__name__)

PLATFORM_RECHECK = timedelta(seconds=30)
Versions = Mapping[int, templates.ActiveTemplate]


class Preparation:
    """What a claim's deliveries are got ready by: read once for all, in two queries.

    They are got ready window by window: what is composed and then written is still in the
    processor's cache.
    """

    def __init__(
        self,
        claim: Claim,
        rules: Policy,
        known: Mapping[str, ContactRecord] | None = None,
    ) -> None:
        """Read what is not `known`: the contacts that are kept here may have been read for many."""
        self.claim, self.rules = claim, rules
        self.channel = Channel(claim.channel)
        self.router = routing.Router(rules, claim.channel)
        self.organization = organizations.get(claim.organization_id)
        self.contacts: dict[str, ContactRecord] | None = None
        self.devices: dict[str, list[DeviceRecord]] = {}
        contact_ids = list({claimed.contact_id for claimed in claim.deliveries})
        try:
            self.contacts = get_contacts(claim.organization_id, contact_ids, known)
        except errors.Unavailable:  # an organization's platform is away, and holds up no other's
            return
        if self.channel is Channel.PUSH:
            self.devices = active_devices(claim.organization_id, contact_ids)

    def take(self, fresh: deque[Claimed], count: int, until: float) -> list[Sending]:
        """Take the next deliveries, address and compose them; what cannot be sent is decided then.

        At most so many, and none after a time (monotonic) but the first: a text may cost much, and
        fail in the end, and nothing else is sent meanwhile.
        """
        ids = [v for each in islice(fresh, count) if (v := each.template_version_id) is not None]
        versions = templates.load_versions(self.claim.organization_id, ids)
        hand: list[Sending] = []
        while fresh and len(hand) < count and not (hand and monotonic() > until):
            hand.append(self._prepare(fresh.popleft(), versions))
        return hand

    def _prepare(self, claimed: Claimed, versions: Versions) -> Sending:
        """Address and compose a delivery; whatever it raises ends that delivery alone."""
        sending = Sending(claimed, self.rules.rules(claimed.category))
        now = clock.now()
        try:
            if self.contacts is None:
                sending.wait("PLATFORM", now + PLATFORM_RECHECK)
            else:
                self._address(sending, self.contacts, now)
            if not sending.decided:
                _compose(self.organization, sending, versions, self.router)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            log.exception(
                "deliver.failed",
                delivery_id=claimed.id,
                message_id=claimed.message_id,
                organization_id=self.claim.organization_id,
            )
            sending.decide(Status.FAILED, "TEMPLATE_ERROR", "it cannot be composed: see the log")
        return sending

    def _address(
        self, sending: Sending, contacts: Mapping[str, ContactRecord], now: datetime
    ) -> None:
        """Find out where a delivery goes now and by which accounts; end what is too late."""
        claimed = sending.claimed
        if claimed.expires_at <= now:
            sending.end_late()
            return
        sending.contact = contacts.get(claimed.contact_id)
        sending.devices = self.devices.get(claimed.contact_id, ())
        if sending.contact is not None:
            sending.address = compose.address_of(sending.contact, self.channel)
        if sending.address is None and not sending.devices:
            sending.give_up(Status.BLOCKED, "UNREACHABLE", "no address on this channel", now=now)
        elif until := _quiet(self.organization, self.rules, sending, now):
            sending.wait("QUIET_HOURS", until)
        elif self.channel is not Channel.PUSH:  # there each device has routes of its own
            routes = self.router.routes(sending.address, test=claimed.test, tried=claimed.tried)
            sending.routes = routes
            if not routes:
                sending.wait_for_provider(now=now)


def _quiet(
    organization: organizations.OrganizationRecord, rules: Policy, sending: Sending, now: datetime
) -> datetime | None:
    """Give the end of the recipient's quiet hours, if it is those now.

    Accept put the first channel off; this is for what came later: a fallback, a retry.
    """
    hours = rules.quiet(sending.channel, sending.rules)
    if hours is None or sending.contact is None:
        return None
    return quiet_until(now, hours, zone(sending.contact.zone, organization.zone))


def _compose(
    organization: organizations.OrganizationRecord,
    sending: Sending,
    versions: Versions,
    router: routing.Router,
) -> None:
    """Render a delivery; a text that cannot be rendered fails its message alone."""
    claimed = sending.claimed
    template = versions.get(claimed.template_version_id or 0)
    if template is not None and template.channel != claimed.channel:
        template = _sibling(organization, template, claimed.channel)  # after a fallback
    try:
        contents = _contents(organization, sending, template)
    except (rendering.RenderFailed, rendering.RenderLimit, rendering.TemplateSyntax) as error:
        sending.decide(Status.FAILED, "TEMPLATE_ERROR", str(error))
        return
    sending.compose(contents, [_routes(router, sending, content) for _, content in contents])
    if not sending.has_turns:
        some = router.routes(None, test=claimed.test, tried=claimed.tried)
        reason = "no active account for the devices" if some else "no active account"
        sending.wait_for_provider(now=clock.now(), reason=reason)


def _routes(router: routing.Router, sending: Sending, content: Content) -> Sequence[Account]:
    """Give the accounts to try for one content, in order."""
    if not isinstance(content, Push):
        return sending.routes
    claimed, device = sending.claimed, (content.platform, content.app)
    return router.routes(None, test=claimed.test, tried=claimed.tried, device=device)


def _sibling(
    organization: organizations.OrganizationRecord, before: templates.ActiveTemplate, channel: str
) -> templates.ActiveTemplate | None:
    """Find the template's version for the channel that a delivery fell back to."""
    found = templates.find_active(organization.id, {before.name})
    wanted = templates.languages(
        before.language, organization.language, chain=organization.locale_fallback
    )
    return templates.pick(found, before.name, channel, wanted)


def _contents(
    organization: organizations.OrganizationRecord,
    sending: Sending,
    template: templates.ActiveTemplate | None,
) -> list[tuple[str | None, Content]]:
    """Give what is to be handed over: one content, or one for each device (with its id)."""
    claimed = sending.claimed
    if template is None and "content" not in claimed.given:
        raise rendering.RenderFailed(f"no template for {claimed.channel}")
    assert sending.contact is not None  # _address decided those without one
    request = compose.RenderRequest(
        organization=organization,
        delivery_id=claimed.id,
        message_id=claimed.message_id,
        contact=sending.contact,
        address=sending.address or "",
        body=claimed.given,
        template=template,
        category=claimed.category,
    )
    with render_limit.limited(organization.id, claimed):
        match claimed.channel:
            case Channel.EMAIL:
                return [(None, compose.email(request))]
            case Channel.SMS:
                return [(None, compose.sms(request))]
        composed = compose.pushes(request, sending.devices)
    return [(d.id, push) for d, push in zip(sending.devices, composed, strict=True)]
