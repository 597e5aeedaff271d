"""Prepare claimed deliveries: find the address, the accounts and the text of each; and where the
sending of a batch stands: what is not prepared, about to leave, and decided.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice, starmap
from time import monotonic

import structlog
from django.db import DatabaseError, InterfaceError

from messaging.content import compose, rendering, templates
from messaging.content.outgoing import OutgoingRenderer, RendererUnavailable
from messaging.delivery.accounts import Router
from messaging.delivery.claims import ClaimedBatch
from messaging.delivery.outgoing import DeviceContent, OutgoingDelivery
from messaging.domain import planning
from messaging.domain.channels import Channel
from messaging.domain.deliveries import ClaimedDelivery
from messaging.domain.statuses import Status, StatusReason, WaitReason
from messaging.domain.timing import quiet_until
from messaging.policy import organization_policy
from messaging.policy.organization_policy import Account, Policy
from push.active_devices import DeviceRecord, active_devices, reached
from rme.core import errors
from rme.core.db import clock
from rme.core.provider import Content, Push
from rme.core.zones import zone
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import embedded_contacts, get_contacts
from rme.tenants import organizations

log = structlog.get_logger(__name__)

PLATFORM_RECHECK = timedelta(seconds=30)
Versions = Mapping[int, templates.ActiveTemplate]


def read_ahead(batches: Sequence[ClaimedBatch]) -> dict[str, dict[str, ContactRecord]]:
    """Fill the caches that preparing and recording these batches read, by four queries in all.

    Return the contacts that organizations keep here, by organization.
    """
    organization_ids = [batch.organization_id for batch in batches]
    organizations.get_many(organization_ids)
    organization_policy.of_many(organization_ids)
    contacts = embedded_contacts(
        {
            batch.organization_id: list({each.contact_id for each in batch.deliveries})
            for batch in batches
        }
    )
    templates.prefetch_versions(
        {
            delivery.template_version_id: batch.organization_id
            for batch in batches
            for delivery in batch.deliveries
            if delivery.template_version_id is not None
        }
    )
    return contacts


class Preparation:
    """What preparing the deliveries of a batch needs: read once, in two queries.

    Deliveries are prepared window by window, so that what is composed is still in the processor's
    cache when it is written.
    """

    def __init__(
        self,
        batch: ClaimedBatch,
        policy: Policy,
        known_contacts: Mapping[str, ContactRecord] | None,
        renderer: OutgoingRenderer,
    ) -> None:
        """Read what is not in `known_contacts`, which were read for several batches at once."""
        self.batch, self.policy, self.renderer = batch, policy, renderer
        self.channel = Channel(batch.channel)
        self.router = Router(policy, batch.channel)
        self.organization = organizations.get(batch.organization_id)
        self.contacts: dict[str, ContactRecord] | None = None
        self.devices: dict[str, list[DeviceRecord]] = {}
        contact_ids = list({claimed.contact_id for claimed in batch.deliveries})
        try:
            self.contacts = get_contacts(batch.organization_id, contact_ids, known_contacts)
        except errors.Unavailable:  # an organization's platform is away, and delays no other's
            return
        if self.channel is Channel.PUSH:
            self.devices = active_devices(batch.organization_id, contact_ids, test=True)

    def take(
        self, queue: deque[ClaimedDelivery], count: int, until: float
    ) -> list[OutgoingDelivery]:
        """Take the next deliveries, address and compose them; what cannot be sent is decided then.

        At most `count`, and after `until` (monotonic) no more than one: a text may take long, and
        nothing else is sent meanwhile.
        """
        ids = [v for each in islice(queue, count) if (v := each.template_version_id) is not None]
        versions = templates.load_versions(self.batch.organization_id, ids)
        prepared: list[OutgoingDelivery] = []
        while queue and len(prepared) < count and not (prepared and monotonic() > until):
            prepared.append(self._prepare(queue.popleft(), versions))
        return prepared

    def _prepare(self, claimed: ClaimedDelivery, versions: Versions) -> OutgoingDelivery:
        """Address and compose a delivery; whatever that raises fails this delivery alone."""
        delivery = OutgoingDelivery(claimed, self.policy.rules(claimed.category))
        now = clock.now()
        try:
            if self.contacts is None:
                delivery.wait(WaitReason.PLATFORM, now + PLATFORM_RECHECK)
            else:
                self._address(delivery, self.contacts, now)
            if not delivery.decided:
                self._compose(delivery, versions)
        except (DatabaseError, InterfaceError):
            raise
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception(
                "deliver.failed",
                delivery_id=claimed.id,
                message_id=claimed.message_id,
                organization_id=self.batch.organization_id,
            )
            delivery.decide(
                Status.FAILED, StatusReason.TEMPLATE_ERROR, "it cannot be composed: see the log"
            )
        return delivery

    def _address(
        self, delivery: OutgoingDelivery, contacts: Mapping[str, ContactRecord], now: datetime
    ) -> None:
        """Set the address and the accounts of a delivery; end it if it has expired."""
        claimed = delivery.claimed
        if claimed.expires_at <= now:
            delivery.expire()
            return
        delivery.contact = contacts.get(claimed.contact_id)
        if self.channel is Channel.PUSH:
            delivery.devices = reached(self.devices.get(claimed.contact_id, ()), test=claimed.test)
        if delivery.contact is not None:
            delivery.address = compose.address_of(delivery.contact, self.channel)
        if delivery.address is None and not delivery.devices:
            delivery.end_channel(
                Status.BLOCKED, StatusReason.UNREACHABLE, "no address on this channel", now=now
            )
        elif until := self._quiet_until(delivery, now):
            delivery.wait(WaitReason.QUIET_HOURS, until)
        elif self.channel is not Channel.PUSH:  # there each device has routes of its own
            routes = self.router.routes(
                delivery.address, test=claimed.test, previous=claimed.previous_account_id
            )
            delivery.routes = routes
            if not routes:
                delivery.back_off(now=now)

    def _quiet_until(self, delivery: OutgoingDelivery, now: datetime) -> datetime | None:
        """Return the end of the recipient's quiet hours, if it is within them now.

        Accept has scheduled the first channel after them; this is for a later fallback or retry.
        """
        hours = self.policy.quiet(delivery.channel, delivery.rules)
        if hours is None or delivery.contact is None:
            return None
        return quiet_until(now, hours, zone(delivery.contact.zone, self.organization.zone))

    def _compose(self, delivery: OutgoingDelivery, versions: Versions) -> None:
        """Render a delivery; a text that cannot be rendered fails this delivery alone."""
        claimed = delivery.claimed
        template = versions.get(claimed.template_version_id or 0)
        if template is not None and template.channel != claimed.channel:
            template = self._template_for(template, claimed.channel)  # after a fallback
        try:
            contents = self._contents(delivery, template)
        except (rendering.RenderFailed, rendering.RenderLimit, rendering.TemplateSyntax) as error:
            delivery.decide(Status.FAILED, StatusReason.TEMPLATE_ERROR, str(error))
            return
        except RendererUnavailable:
            log.warning("deliver.renderer_unavailable", delivery_id=claimed.id, exc_info=True)
            delivery.back_off(now=clock.now(), reason="the process that renders can't run")
            return
        delivery.set_contents(contents, [self._routes(delivery, each.content) for each in contents])
        if not delivery.has_untried_accounts:
            other_routes = self.router.routes(
                None, test=claimed.test, previous=claimed.previous_account_id
            )
            reason = "no active account for the devices" if other_routes else "no active account"
            delivery.back_off(now=clock.now(), reason=reason)

    def _routes(self, delivery: OutgoingDelivery, content: Content) -> Sequence[Account]:
        """Return the accounts to try for one content, in order."""
        if not isinstance(content, Push):
            return delivery.routes
        claimed, device = delivery.claimed, (content.platform, content.app)
        return self.router.routes(
            None, test=claimed.test, previous=claimed.previous_account_id, device=device
        )

    def _template_for(
        self, original: templates.ActiveTemplate, channel: str
    ) -> templates.ActiveTemplate | None:
        """Return the template's version for the channel that a delivery fell back to."""
        organization = self.organization
        active_templates = templates.find_active(organization.id, {original.name})
        languages = planning.languages(
            original.language, organization.language, chain=organization.locale_fallback
        )
        return planning.pick(active_templates, original.name, channel, languages)

    def _contents(
        self, delivery: OutgoingDelivery, template: templates.ActiveTemplate | None
    ) -> list[DeviceContent]:
        """Return what is to be handed over: one content, or one for each device."""
        claimed = delivery.claimed
        if template is None and "content" not in claimed.body:
            raise rendering.RenderFailed(f"no template for {Channel(claimed.channel).noun}")
        assert delivery.contact is not None  # _address decided those without one
        request = compose.RenderRequest(
            organization=self.organization,
            delivery_id=claimed.id,
            message_id=claimed.message_id,
            contact=delivery.contact,
            address=delivery.address or "",
            body=claimed.body,
            template=template,
            policy=self.policy,
            category=claimed.category,
            is_outgoing=True,
        )
        rendered = None
        if template is not None:
            rendered = self.renderer.render(self.organization.id, template, request.context)
        contents = compose.composed(request, self.channel, delivery.devices, rendered)
        device_ids: list[str | None] = [device.id for device in delivery.devices]
        return list(starmap(DeviceContent, zip(device_ids or [None], contents, strict=True)))


class BatchProgress:
    """The part of one organization's batch in the windows of the send loop."""

    def __init__(
        self,
        batch: ClaimedBatch,
        contacts: Mapping[str, ContactRecord] | None,
        renderer: OutgoingRenderer,
    ) -> None:
        self.batch, self.contacts, self.renderer = batch, contacts, renderer
        self.policy = organization_policy.of(batch.organization_id)
        self.fresh = deque(batch.deliveries)
        """Deliveries that are not prepared yet."""
        self.window: list[OutgoingDelivery] = []
        """Deliveries that leave next; after the hand-over, those that were answered in time."""
        self.decided = self._unreadable()
        """Deliveries whose next status is to be recorded."""
        self.released_count = 0

    @cached_property
    def preparation(self) -> Preparation:
        """Read what preparing needs, once, when the first delivery is about to leave."""
        return Preparation(self.batch, self.policy, self.contacts, self.renderer)

    @property
    def is_open(self) -> bool:
        """Return whether anything is still to be sent or recorded."""
        return bool(self.window or self.fresh or self.decided)

    @property
    def sent_count(self) -> int:
        """Return how many deliveries were tried, or ended without a try."""
        return len(self.batch.deliveries) - self.released_count

    def set_decided_apart(self) -> None:
        """Move the decided deliveries out of the window."""
        if decided := [each for each in self.window if each.decided]:
            self.decided += decided
            self.window = [each for each in self.window if not each.decided]

    def fill(self, count: int, until: float) -> None:
        """Add `count` prepared deliveries to the window; after `until` (monotonic) at most one."""
        limit = len(self.window) + count
        while self.fresh and len(self.window) < limit:
            self.window += self.preparation.take(self.fresh, limit - len(self.window), until)
            self.set_decided_apart()
            if monotonic() > until:
                break

    def release_fresh(self) -> None:
        """Release the claim of what has not been tried."""
        self.released_count += len(self.fresh)
        for claimed in self.fresh:
            delivery = OutgoingDelivery(claimed, self.policy.rules(claimed.category))
            delivery.release(clock.now())
            self.decided.append(delivery)
        self.fresh.clear()

    def _unreadable(self) -> list[OutgoingDelivery]:
        """Return the deliveries whose rows cannot be read, as failed."""
        failed = [
            OutgoingDelivery(each, self.policy.rules(each.category))
            for each in self.batch.unreadable
        ]
        for delivery in failed:
            delivery.decide(
                Status.FAILED, StatusReason.TEMPLATE_ERROR, "what was to be sent cannot be read"
            )
        return failed
