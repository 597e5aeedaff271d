"""Webhook endpoints: subscriptions, signing secrets, URL checks, enabling and disabling.

https://github.com/standard-webhooks/standard-webhooks
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from messaging.models import WebhookEndpoint
from messaging.models.endpoints import ALL_EVENTS
from messaging.webhooks import signatures
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.transport import AddressPolicy, origin_of

PER_ORGANIZATION = 20
_URL = re.compile(r"[\x21-\x7e]+")
DISABLED_BY_HAND = "By hand."
"""The reason of an endpoint that was disabled in the admin."""
DISABLED_BY_APPLICATION = "By an application."
ON_PURPOSE = frozenset({DISABLED_BY_HAND, DISABLED_BY_APPLICATION})
"""Reasons that are no finding."""
OVERLAP = timedelta(hours=24)
"""How long a replaced secret still signs, in addition to the new one."""


@dataclass(frozen=True, slots=True)
class EndpointSubscription:
    """The event types that an enabled endpoint subscribes to."""

    endpoint_id: int
    types: frozenset[str]

    def includes(self, event_type: str) -> bool:
        """Return whether events of a type are delivered to the endpoint."""
        every = event_type.startswith("message.") and ALL_EVENTS in self.types
        return every or event_type in self.types


Subscriptions = Mapping[str, tuple[EndpointSubscription, ...]]
"""By organization."""

_cache: TtlCache[str, tuple[EndpointSubscription, ...]] = TtlCache(seconds=2)


def subscriptions(organization_ids: Collection[str]) -> Subscriptions:
    """Return the organizations' subscriptions: at most one query, every two seconds a process."""
    return _cache.get_many(organization_ids, _read)


def _read(organization_ids: list[str]) -> Subscriptions:
    found: dict[str, tuple[EndpointSubscription, ...]] = dict.fromkeys(organization_ids, ())
    enabled = WebhookEndpoint.objects.filter(organization_id__in=organization_ids, enabled=True)
    columns = enabled.order_by("pk").values_list("organization_id", "pk", "types")
    for organization_id, endpoint_id, types in columns:
        found[organization_id] += (EndpointSubscription(endpoint_id, frozenset(types)),)
    return found


def invalidate(organization_id: str) -> None:
    """Drop an organization's cached subscriptions, after the admin changed them."""
    _cache.forget(organization_id)


def url_error(url: str) -> str:
    """Return why a URL cannot be an endpoint's; empty if it can.

    The addresses that its host name resolves to are checked at each request.
    """
    origin = origin_of(url)
    if origin is None or origin.scheme not in ("http", "https") or not _URL.fullmatch(url):
        return "this is no address like https://hooks.example.com/rme"
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    if reason := policy.refuses(origin):
        return reason
    if _is_ip_address(origin.host) and not policy.allows(origin.host, origin.port):
        return "the address is not public"
    return ""


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def signing_secrets(row: WebhookEndpoint) -> list[str]:
    """Return the secrets that sign now, with the former one for a day after its replacement."""
    former = row.former_until is not None and row.former_until > clock.now()
    return [row.secret, *([row.former_secret] if former else [])]


def rotate_secret(row: WebhookEndpoint) -> str:
    """Replace an endpoint's secret and return the new one. The former one signs for a day more."""
    secret = signatures.new_secret()
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        former_secret=row.secret, former_until=Now() + OVERLAP, secret=secret
    )
    return secret


def delete_expired_secrets() -> None:
    """Delete the former secrets that no longer sign."""
    WebhookEndpoint.objects.filter(former_until__lte=Now()).update(
        former_secret="", former_until=None
    )


def enable(row: WebhookEndpoint) -> None:
    """Enable an endpoint, and reset its failures and its backoff."""
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        enabled=True,
        disabled_reason="",
        failures=0,
        failing_since=None,
        free_at=Now(),
        fence=F("fence") + 1,
    )
    invalidate(row.organization_id)


def try_now(row: WebhookEndpoint) -> None:
    """End the backoff of an endpoint that fails, so that what is due is sent at once."""
    failing = WebhookEndpoint.objects.filter(pk=row.pk, failures__gt=0)
    failing.update(free_at=Now(), fence=F("fence") + 1)


def disable(row: WebhookEndpoint, reason: str = DISABLED_BY_HAND) -> None:
    """Disable an endpoint: it receives nothing until it is enabled again."""
    WebhookEndpoint.objects.filter(pk=row.pk).update(enabled=False, disabled_reason=reason)
    invalidate(row.organization_id)
