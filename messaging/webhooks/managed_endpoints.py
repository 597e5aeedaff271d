"""Webhook endpoints as applications and people manage them. Each change is in the audit.

Of an endpoint that another organization has, NotFound is raised as of one that does not exist.
"""

import re
from uuid import UUID

from django.db import transaction

from messaging.models import WebhookEndpoint
from messaging.webhooks import delivery_log, endpoints, replays, signatures
from messaging.webhooks.delivery_log import WebhookDeliveryFilter
from messaging.webhooks.endpoint_inputs import (
    EndpointInput,
    EndpointUpdateInput,
    ReplayRange,
    check_url,
)
from rme.core import errors
from rme.core.db import clock
from rme.tenants import audit
from rme.tenants.audit import Action, Actor, Values
from rme.tenants.models import Organization

_KEY = re.compile("[1-9][0-9]{0,17}")
_NOT_LOGGED = frozenset({"secret", "former_secret"})


def find(
    organization_id: str, *, limit: int, before: int | None = None
) -> tuple[list[WebhookEndpoint], int | None]:
    """Return a page of endpoints, newest first, and the id after which the next page begins."""
    rows = WebhookEndpoint.objects.filter(organization_id=organization_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    page = list(rows.order_by("-pk")[: limit + 1])
    return page[:limit], page[limit - 1].pk if len(page) > limit else None


def get(organization_id: str, endpoint_id: str, *, lock: bool = False) -> WebhookEndpoint:
    """Return an endpoint, locked until the transaction ends if asked. Raises NotFound."""
    rows = WebhookEndpoint.objects.filter(organization_id=organization_id)
    if lock:
        rows = rows.select_for_update()
    row = rows.filter(pk=int(endpoint_id)).first() if _KEY.fullmatch(endpoint_id) else None
    if row is None:
        raise errors.NotFound("There is no such webhook endpoint.")
    return row


def create(organization_id: str, given: EndpointInput, actor: Actor) -> WebhookEndpoint:
    """Create an endpoint with a new secret. Raises InvalidPayload.

    The organization is locked, so that two calls do not exceed the limit together.
    """
    check_url(given.url)
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        own = WebhookEndpoint.objects.filter(organization_id=organization_id)
        if own.count() >= endpoints.PER_ORGANIZATION:
            most = endpoints.PER_ORGANIZATION
            raise errors.InvalidPayload.at("url", f"an organization has at most {most} endpoints")
        row = WebhookEndpoint.objects.create(
            organization_id=organization_id,
            url=given.url,
            description=given.description,
            types=list(dict.fromkeys(given.types)),
            secret=signatures.new_secret(),
            created_at=clock.now(),
        )
        changes = {"url": ["", row.url], "types": ["", ", ".join(row.types)]}
        audit.record(actor, [audit.about(row, Action.ADDED, changes=changes)])
    endpoints.invalidate(organization_id)
    return row


def update(
    organization_id: str, endpoint_id: str, given: EndpointUpdateInput, actor: Actor
) -> WebhookEndpoint:
    """Change what is given, enable or disable. Raises NotFound and InvalidPayload.

    A new URL and being enabled reset the failures.
    """
    if "url" in given.model_fields_set:
        check_url(given.url)
    with transaction.atomic():
        row = get(organization_id, endpoint_id, lock=True)
        changes = _changes(row, given)
        columns = set(changes) - {"enabled"}
        for name in columns:
            setattr(row, name, _value(given, name))
        if columns:  # only these: the dispatcher may be updating the others
            row.save(update_fields=columns)
        if "enabled" in changes and not given.enabled:
            endpoints.disable(row, endpoints.DISABLED_BY_APPLICATION)
        elif "enabled" in changes or ("url" in changes and row.enabled):
            endpoints.enable(row)
        if changes:
            audit.record(actor, [audit.about(row, Action.CHANGED, changes=changes)])
        row.refresh_from_db()
    endpoints.invalidate(organization_id)
    return row


def _value(given: EndpointUpdateInput, name: str) -> object:
    value: object = getattr(given, name)
    return list(dict.fromkeys(given.types)) if name == "types" else value


def _changes(row: WebhookEndpoint, given: EndpointUpdateInput) -> Values:
    """Return the fields that are given and differ, with both values."""
    return {
        name: [_text(getattr(row, name)), _text(_value(given, name))]
        for name in sorted(given.model_fields_set)
        if getattr(row, name) != _value(given, name)
    }


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def delete(organization_id: str, endpoint_id: str, actor: Actor) -> None:
    """Delete an endpoint and its deliveries. Raises NotFound."""
    with transaction.atomic():
        row = get(organization_id, endpoint_id, lock=True)
        changes = audit.values_of(row, _NOT_LOGGED)
        audit.record(actor, [audit.about(row, Action.DELETED, changes=changes)])
        delivery_log.delete_deliveries(row.pk)
        row.delete()
    endpoints.invalidate(organization_id)


def rotate_secret(organization_id: str, endpoint_id: str, actor: Actor) -> WebhookEndpoint:
    """Replace an endpoint's secret; the former one signs for a day more. Raises NotFound."""
    with transaction.atomic():
        row = get(organization_id, endpoint_id, lock=True)
        endpoints.rotate_secret(row)
        audit.record(actor, [audit.about(row, Action.KEY_ROTATED, text="new secret")])
        row.refresh_from_db()
    return row


def test(organization_id: str, endpoint_id: str, actor: Actor) -> UUID:
    """Queue a test event; return its webhook-id. Raises NotFound and InvalidPayload."""
    with transaction.atomic():
        row = _enabled(organization_id, endpoint_id)
        webhook_id = replays.queue_test(row)
        audit.record(actor, [audit.about(row, Action.TESTED, text="event")])
    return webhook_id


def replay(organization_id: str, endpoint_id: str, period: ReplayRange | None, actor: Actor) -> int:
    """Queue the events of a period again, or the failed deliveries; return their number.

    Raises NotFound, and InvalidPayload if the endpoint is disabled.
    """
    with transaction.atomic():
        row = _enabled(organization_id, endpoint_id)
        if period is None:
            scope, count = "failed deliveries", replays.replay_failed(row)
        else:
            scope = f"{clock.iso(period.since)} to {clock.iso(period.until)}"
            count = replays.replay(row, period.since, period.until)
        text = f"{scope}: {count} events"
        audit.record(actor, [audit.about(row, Action.REPLAYED, text=text)])
    return count


def replay_chosen(
    organization_id: str,
    endpoint_id: str,
    wanted: WebhookDeliveryFilter,
    actor: Actor,
    reason: str = "",
) -> int:
    """Queue the deliveries that a filter matches again, and end the endpoint's backoff; return
    their number. Raises NotFound, and InvalidPayload if the endpoint is disabled.
    """
    with transaction.atomic():
        row = _enabled(organization_id, endpoint_id)
        count = replays.replay_chosen(row, wanted)
        endpoints.try_now(row)
        scope = str(wanted.webhook_id) if wanted.webhook_id else "chosen deliveries"
        text = f"{scope}: {count} {'event' if count == 1 else 'events'}"
        audit.record(actor, [audit.about(row, Action.REPLAYED, text=text, reason=reason)])
    return count


def _enabled(organization_id: str, endpoint_id: str) -> WebhookEndpoint:
    row = get(organization_id, endpoint_id)
    if not row.enabled:
        raise errors.InvalidPayload.at("enabled", "the endpoint is disabled")
    return row
