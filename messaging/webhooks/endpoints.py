"""Endpoints of outbound webhooks: who is told of what, their secrets, and being on or off.

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
from rme.transport import AddressPolicy
from rme.transport.addresses import origin_of

PER_ORGANIZATION = 20
_URL = re.compile(r"[\x21-\x7e]+")
DISABLED_BY_HAND = "By hand."
"""Why an endpoint is off that somebody switched off."""
OVERLAP = timedelta(hours=24)
"""How long a former secret signs beside its successor."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """An endpoint that is on, and what it asked to be told of."""

    endpoint_id: int
    types: frozenset[str]

    def wants(self, kind: str) -> bool:
        """Say whether the endpoint is to be told of events of a type."""
        return ALL_EVENTS in self.types or kind in self.types


Subscriptions = Mapping[str, tuple[Subscription, ...]]
"""By organization."""

_kept: TtlCache[str, tuple[Subscription, ...]] = TtlCache(seconds=2)


def subscriptions(organization_ids: Collection[str]) -> Subscriptions:
    """Give who is told of organizations' events: one query at most, every two seconds a process."""
    return _kept.get_many(organization_ids, _read)


def _read(organization_ids: list[str]) -> Subscriptions:
    rows = WebhookEndpoint.objects.filter(organization_id__in=organization_ids, enabled=True)
    found: dict[str, tuple[Subscription, ...]] = dict.fromkeys(organization_ids, ())
    for owner, key, types in rows.order_by("id").values_list("organization_id", "id", "types"):
        found[owner] += (Subscription(key, frozenset(types)),)
    return found


def invalidate(organization_id: str) -> None:
    """Read an organization's endpoints anew at the next event (the admin changed them)."""
    _kept.forget(organization_id)


def url_error(url: str) -> str:
    """Say why an address cannot be an endpoint's, or nothing.

    What its name leads to is looked at each time that it is called.
    """
    where = origin_of(url)
    if where is None or where.scheme not in ("http", "https") or not _URL.fullmatch(url):
        return "this is no address like https://hooks.example.com/rme"
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    if why := policy.refuses(where):
        return why
    if _is_number(where.host) and not policy.allows(where.host, where.port):
        return "the address is not public"
    return ""


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def signing_secrets(row: WebhookEndpoint) -> list[str]:
    """Give the secrets that sign now: the former one too, for a day after it was replaced."""
    former = row.former_until is not None and row.former_until > clock.now()
    return [row.secret, *([row.former_secret] if former else [])]


def rotate_secret(row: WebhookEndpoint) -> str:
    """Give an endpoint a new secret, which is returned; the former one signs on for a day."""
    secret = signatures.new_secret()
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        former_secret=row.secret, former_until=Now() + OVERLAP, secret=secret
    )
    return secret


def delete_expired_secrets() -> None:
    """Drop the former secrets whose day is over."""
    WebhookEndpoint.objects.filter(former_until__lte=Now()).update(
        former_secret="", former_until=None
    )


def enable(row: WebhookEndpoint) -> None:
    """Tell an endpoint of events again, from the beginning: what failed before is forgiven."""
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        enabled=True,
        disabled_reason="",
        failures=0,
        failing_since=None,
        free_at=Now(),
        fence=F("fence") + 1,
    )
    invalidate(row.organization_id)


def disable(row: WebhookEndpoint, reason: str = DISABLED_BY_HAND) -> None:
    """Tell an endpoint of nothing more, until it is enabled again."""
    WebhookEndpoint.objects.filter(pk=row.pk).update(enabled=False, disabled_reason=reason)
    invalidate(row.organization_id)
