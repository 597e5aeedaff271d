"""Webhook endpoints as applications and people manage them. Each change is in the audit.

Another organization's endpoints raise NotFound, like missing ones. For applications, so do
endpoints of the other mode, TEST or LIVE.
"""

import re
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

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
from rme.core.db import clock, keyset
from rme.tenants import audit
from rme.tenants.audit import Action, Actor, Values
from rme.tenants.models import Organization

_KEY = re.compile("[1-9][0-9]{0,17}")
_NOT_LOGGED = frozenset({"secret", "former_secret"})


class EndpointScope(NamedTuple):
    """The endpoints of an organization, in all modes or in one."""

    organization_id: str
    test: bool | None = None

    @property
    def rows(self) -> QuerySet[WebhookEndpoint]:
        """Return the endpoints in the scope."""
        rows = WebhookEndpoint.objects.filter(organization_id=self.organization_id)
        return rows if self.test is None else rows.filter(test=self.test)


def find(
    scope: EndpointScope, *, limit: int, before: int | None = None
) -> keyset.Page[WebhookEndpoint]:
    """Return a page of endpoints, newest first."""
    return keyset.page(scope.rows, limit=limit, before=before)


def get(scope: EndpointScope, endpoint_id: str, *, lock: bool = False) -> WebhookEndpoint:
    """Return an endpoint, locked until the transaction ends if asked. Raises NotFound."""
    rows = scope.rows
    if lock:
        rows = rows.select_for_update()
    row = rows.filter(pk=int(endpoint_id)).first() if _KEY.fullmatch(endpoint_id) else None
    if row is None:
        raise errors.NotFound(_("This webhook endpoint doesn't exist."))
    return row


def create(scope: EndpointScope, fields: EndpointInput, actor: Actor) -> WebhookEndpoint:
    """Create an endpoint with a new secret. Raises InvalidPayload.

    The organization is locked, so that two calls do not exceed the limit together.
    """
    check_url(fields.url)
    organization_id = scope.organization_id
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        existing = WebhookEndpoint.objects.filter(organization_id=organization_id)
        if existing.count() >= endpoints.PER_ORGANIZATION:
            limit = endpoints.PER_ORGANIZATION
            why = _("your organization has all %(limit)s endpoints: delete one first")
            raise errors.InvalidPayload.at("body", why % {"limit": limit})
        row = WebhookEndpoint.objects.create(
            organization_id=organization_id,
            test=bool(scope.test),
            url=fields.url,
            description=fields.description,
            types=list(dict.fromkeys(fields.types)),
            secret=signatures.new_secret(),
            created_at=clock.now(),
        )
        values = {"url": row.url, "description": row.description, "types": ", ".join(row.types)}
        changes = {name: ["", value] for name, value in values.items() if value}
        audit.record(actor, [audit.about(row, Action.ADDED, changes=changes)])
    return row


def update(
    scope: EndpointScope,
    endpoint_id: str,
    fields: EndpointUpdateInput,
    actor: Actor,
    disabled_reason: str = endpoints.DISABLED_BY_APPLICATION,
) -> WebhookEndpoint:
    """Change the caller's fields, enable or disable. Raises NotFound and InvalidPayload.

    A new URL and being enabled reset the failures.
    """
    if "url" in fields.model_fields_set:
        check_url(fields.url)
    with transaction.atomic():
        row = get(scope, endpoint_id, lock=True)
        changes = _changes(row, fields)
        columns = set(changes) - {"enabled"}
        for name in columns:
            setattr(row, name, _value(fields, name))
        if columns:  # only these: the dispatcher may be updating the others
            row.save(update_fields=columns)
        if "enabled" in changes and not fields.enabled:
            endpoints.disable(row, disabled_reason)
        elif "enabled" in changes or ("url" in changes and row.enabled):
            endpoints.enable(row)
        if changes:
            audit.record(actor, [audit.about(row, Action.CHANGED, changes=changes)])
        return get(scope, endpoint_id)


def _value(fields: EndpointUpdateInput, name: str) -> object:
    value: object = getattr(fields, name)
    return list(dict.fromkeys(fields.types)) if name == "types" else value


def _changes(row: WebhookEndpoint, fields: EndpointUpdateInput) -> Values:
    """Return the fields that are given and differ, with both values."""
    return {
        name: [_text(getattr(row, name)), _text(_value(fields, name))]
        for name in sorted(fields.model_fields_set)
        if getattr(row, name) != _value(fields, name)
    }


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def delete(scope: EndpointScope, endpoint_id: str, actor: Actor) -> None:
    """Delete an endpoint and its deliveries. Raises NotFound."""
    with transaction.atomic():
        row = get(scope, endpoint_id, lock=True)
        changes = audit.values_of(row, _NOT_LOGGED)
        audit.record(actor, [audit.about(row, Action.DELETED, changes=changes)])
        delivery_log.delete_deliveries(row.pk)
        row.delete()


def rotate_secret(scope: EndpointScope, endpoint_id: str, actor: Actor) -> WebhookEndpoint:
    """Replace an endpoint's secret; the former one signs for a day more. Raises NotFound."""
    with transaction.atomic():
        row = get(scope, endpoint_id, lock=True)
        endpoints.rotate_secret(row)
        audit.record(actor, [audit.about(row, Action.KEY_ROTATED, text="new secret")])
        return get(scope, endpoint_id)


def test(scope: EndpointScope, endpoint_id: str, actor: Actor) -> UUID:
    """Queue a test event; return its webhook-id. Raises NotFound and InvalidPayload."""
    with transaction.atomic():
        row = _enabled(scope, endpoint_id)
        webhook_id = replays.queue_test(row)
        audit.record(actor, [audit.about(row, Action.TESTED, text="event")])
    return webhook_id


def replay(scope: EndpointScope, endpoint_id: str, period: ReplayRange | None, actor: Actor) -> int:
    """Queue the events of a period again, or the failed deliveries; return their number.

    Raises NotFound, and InvalidPayload if the endpoint is disabled.
    """
    with transaction.atomic():
        row = _enabled(scope, endpoint_id)
        if period is None:
            selection, count = "failed deliveries", replays.replay_failed(row)
        else:
            selection = f"{clock.iso(period.since)} to {clock.iso(period.until)}"
            count = replays.replay(row, period.since, period.until)
        text = f"{selection}: {count} events"
        audit.record(actor, [audit.about(row, Action.REPLAYED, text=text)])
    return count


def replay_chosen(
    scope: EndpointScope,
    endpoint_id: str,
    query: WebhookDeliveryFilter,
    actor: Actor,
    reason: str = "",
) -> int:
    """Queue the deliveries that a filter matches again, and end the endpoint's backoff; return
    their number. Raises NotFound, and InvalidPayload if the endpoint is disabled.
    """
    with transaction.atomic():
        row = _enabled(scope, endpoint_id)
        count = replays.replay_chosen(row, query)
        endpoints.try_now(row)
        selection = str(query.webhook_id) if query.webhook_id else "chosen deliveries"
        text = f"{selection}: {count} {'event' if count == 1 else 'events'}"
        audit.record(actor, [audit.about(row, Action.REPLAYED, text=text, reason=reason)])
    return count


def _enabled(scope: EndpointScope, endpoint_id: str) -> WebhookEndpoint:
    row = get(scope, endpoint_id)
    if not row.enabled:
        raise errors.InvalidPayload.at("enabled", _("the endpoint is disabled"))
    return row
