"""Sending a window of deliveries: gates again, compose, hand over, record what came of it.

Three short transactions around the network, and none across it: the claim (before this module is
called), the attempts written ahead together with the last look at the gates, and the outcomes. A
worker that is killed leaves at most this window in doubt, and its attempts show which.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from time import monotonic
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from messaging import composing, gates, policy, rendering, routing, suppression, templates
from messaging.claiming import Claimed, Window
from messaging.models import Attempt, Delivery, Event
from messaging.outcome import Receipt, Sending, Shot
from messaging.policy import Policy
from messaging.providers.base import Content, Dispatch
from messaging.states import TRANSITIONS, Status
from push.devices import active_devices
from rme.core import clock, ids, sql
from rme.core.channels import Channel
from rme.core.outcomes import Accepted, Outcome, Retryable
from rme.core.states import advance
from rme.core.transport import Transport
from rme.crm.contacts import get_contacts
from rme.tenants import organizations

log = structlog.get_logger(__name__)

PAUSE_RECHECK = timedelta(seconds=60)


def deliver(window: Window, transport: Transport) -> list[Receipt]:
    """Send a window. Gives the receipts that came with the answers (the simulator's)."""
    rules = policy.of(window.organization_id)
    until = monotonic() + settings.LEASE_SECONDS / 2
    hand = [Sending(claimed, rules.rules(claimed.category)) for claimed in window.deliveries]
    _address(window, hand, rules)
    _compose(window, _open(hand))
    with transaction.atomic():
        _pass_gates(window, _open(hand))
        _write_attempts(window, _open(hand))
        _record(window, [sending for sending in hand if sending.decided])
    receipts: list[Receipt] = []
    while under_way := _open(hand):
        receipts += _send(under_way, transport, until)
        for sending in under_way:
            sending.judge(now=clock.now(), may_go_on=monotonic() < until)
        with transaction.atomic():
            _write_outcomes(under_way)
            _write_attempts(window, _open(under_way))
            _record(window, [sending for sending in under_way if sending.decided])
    return receipts


def _open(hand: Iterable[Sending]) -> list[Sending]:
    return [sending for sending in hand if not sending.decided]


def _address(window: Window, hand: Sequence[Sending], rules: Policy) -> None:
    """Find out where each delivery goes now and by which accounts; end what is too late."""
    now = clock.now()
    contact_ids = list({sending.claimed.contact_id for sending in hand})
    contacts = get_contacts(window.organization_id, contact_ids)
    pushing = window.channel == Channel.PUSH
    devices = active_devices(window.organization_id, contact_ids) if pushing else {}
    for sending in hand:
        claimed = sending.claimed
        if claimed.expires_at <= now:
            sending.decide(Status.EXPIRED, "EXPIRED", "too late to be of use")
            continue
        sending.contact = contacts.get(claimed.contact_id)
        sending.devices = devices.get(claimed.contact_id, [])
        if sending.contact is not None:
            sending.address = composing.address_of(sending.contact, Channel(window.channel))
        if sending.address is None and not sending.devices:
            sending.give_up(Status.BLOCKED, "UNREACHABLE", "no address on this channel", now=now)
            continue
        sending.routes = routing.routes(rules, window.channel, sending.address, test=claimed.test)
        if not sending.routes:
            sending.wait_for_provider(now=now)


def _compose(window: Window, hand: Sequence[Sending]) -> None:
    """Render each delivery; a text that cannot be rendered fails its message alone."""
    organization = organizations.get(window.organization_id)
    versions = templates.by_versions(
        window.organization_id,
        [v for s in hand if (v := s.claimed.template_version_id) is not None],
    )
    for sending in hand:
        claimed = sending.claimed
        template = versions.get(claimed.template_version_id or 0)
        if template is not None and template.channel != window.channel:
            template = _sibling(window, claimed)  # after a fallback to another channel
        try:
            sending.contents = _contents(organization, sending, template)
        except (rendering.RenderFailed, rendering.RenderLimit, rendering.TemplateSyntax) as error:
            sending.decide(Status.FAILED, "TEMPLATE_ERROR", str(error))


def _sibling(window: Window, claimed: Claimed) -> templates.ActiveTemplate | None:
    """Find the template's version for the channel that the delivery fell back to."""
    found = templates.active(window.organization_id, {claimed.template or ""})
    before = templates.by_versions(window.organization_id, [claimed.template_version_id or 0])
    language = next(iter(before.values())).language
    return templates.pick(found, claimed.template or "", window.channel, [language])


def _contents(
    organization: organizations.OrganizationRecord,
    sending: Sending,
    template: templates.ActiveTemplate | None,
) -> list[tuple[UUID | None, Content]]:
    """Give what is to be handed over: one content, or one for each device (with its id)."""
    claimed = sending.claimed
    if template is None and "content" not in claimed.given:
        raise rendering.RenderFailed(f"no template for {claimed.channel}")
    assert sending.contact is not None  # _address decided those without one
    letter = composing.Letter(
        organization=organization,
        delivery_id=str(claimed.id),
        message_id=str(claimed.message_id),
        contact=sending.contact,
        address=sending.address or "",
        given=claimed.given,
        template=template,
    )
    match claimed.channel:
        case Channel.EMAIL:
            return [(None, composing.email(letter))]
        case Channel.SMS:
            return [(None, composing.sms(letter))]
    return [(device.id, composing.push(letter, device)) for device in sending.devices]


def _pass_gates(window: Window, hand: Sequence[Sending]) -> None:
    """Look at pauses, suppressions and consent a last time, in the transaction of the attempts."""
    if not hand:
        return
    now = clock.now()
    paused = gates.pauses([window.organization_id])[window.organization_id]
    refusals = gates.check(
        window.organization_id,
        [
            gates.Candidate(
                sending.claimed.contact_id,
                window.channel,
                sending.address,
                sending.rules,
                sending.claimed.id,
            )
            for sending in hand
        ],
    )
    for sending, refusal in zip(hand, refusals, strict=True):
        claimed = sending.claimed
        if paused.cover(window.channel, claimed.category, claimed.template):
            sending.wait("PAUSED", now + PAUSE_RECHECK)
        elif refusal:
            sending.give_up(Status.BLOCKED, refusal.code, refusal.default, now=now)


def _write_attempts(window: Window, hand: Sequence[Sending]) -> None:
    """Write ahead, for each delivery, the attempts with the account that is next."""
    now = clock.now()
    rows = []
    for sending in hand:
        account = sending.next_account()
        for device_id, content in sending.contents:
            shot = Shot(ids.new_id(), account, device_id, content)
            sending.shots.append(shot)
            rows.append(
                {
                    "id": shot.attempt_id,
                    "organization_id": window.organization_id,
                    "message_id": sending.claimed.message_id,
                    "delivery_id": sending.claimed.id,
                    "fence": sending.claimed.fence,
                    "channel": window.channel,
                    "provider": account.name,
                    "account_id": account.id,
                    "device_id": device_id,
                    "started_at": now,
                }
            )
    sql.insert({Attempt: rows})


def _send(hand: Sequence[Sending], transport: Transport, until: float) -> list[Receipt]:
    """Hand the open shots to their providers, account by account, and note the answers."""
    by_account: dict[int, list[Shot]] = defaultdict(list)
    owner: dict[UUID, Sending] = {}
    for sending in hand:
        for shot in sending.shots:
            if shot.outcome is None:
                by_account[id(shot.account)].append(shot)
                owner[shot.attempt_id] = sending
    receipts = []
    for shots in by_account.values():
        started = monotonic()
        if started > until:  # another silent account would outlast the lease
            outcomes: list[Outcome] = [Retryable("no time left in this turn")] * len(shots)
        else:
            outcomes = _hand_over(shots, transport)
        took = int((monotonic() - started) * 1000)
        for shot, outcome in zip(shots, outcomes, strict=True):
            shot.outcome, shot.latency_ms = outcome, took
            if isinstance(outcome, Accepted):
                delivery_id = owner[shot.attempt_id].claimed.id
                receipts += [Receipt(delivery_id, kind) for kind in outcome.receipts]
    return receipts


def _hand_over(shots: Sequence[Shot], transport: Transport) -> list[Outcome]:
    provider = shots[0].account.provider
    assert provider is not None  # only active accounts are routes
    return provider.send([Dispatch(shot.attempt_id, shot.content) for shot in shots], transport)


def _write_outcomes(hand: Sequence[Sending]) -> None:
    """Write what each attempt of this round came to."""
    rows = []
    for sending in hand:
        for shot in sending.heard():
            rows.append(
                {
                    "id": shot.attempt_id,
                    "outcome": type(shot.outcome).__name__,
                    "reason": (getattr(shot.outcome, "reason", None) or "")[:200] or None,
                    "provider_id": (getattr(shot.outcome, "provider_id", None) or "")[:255] or None,
                    "latency_ms": shot.latency_ms,
                }
            )
    sql.update(Attempt, rows)


def _record(window: Window, hand: Sequence[Sending]) -> None:
    """Write where the deliveries stand now, the events of it, and addresses found dead."""
    if not hand:
        return
    now = clock.now()
    moved = advance(Delivery, TRANSITIONS, [sending.row() for sending in hand])
    events = [
        {
            "id": ids.new_id(),
            "organization_id": window.organization_id,
            "message_id": sending.claimed.message_id,
            "delivery_id": sending.claimed.id,
            "type": event.type,
            "at": now,
            "channel": window.channel,
            "provider": event.provider,
            "detail": {"reason": event.reason} if event.reason else None,
        }
        for sending in hand
        if sending.claimed.id in moved
        for event in sending.events
    ]
    sql.insert({Event: events})
    suppression.suppress(
        [
            suppression.Entry(
                window.organization_id, window.channel, s.address, "HARD_BOUNCE", "PROVIDER"
            )
            for s in hand
            if s.address and s.bounced_hard
        ]
    )
    if len(moved) < len(hand):
        log.warning("deliver.fenced", count=len(hand) - len(moved), channel=window.channel)
