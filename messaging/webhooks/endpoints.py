"""Webhook endpoints: who gets which event, signing secrets, URL checks, enabling and disabling.

https://github.com/standard-webhooks/standard-webhooks
"""

import re
from datetime import timedelta
from ipaddress import ip_address

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop

from messaging.models import WebhookEndpoint
from messaging.webhooks import signatures
from rme.core.db import clock
from rme.core.db.encrypted_fields import UnreadableSecret
from rme.transport.addresses import AddressPolicy, origin_of

PER_ORGANIZATION = 20
_URL = re.compile(r"[\x21-\x7e]+")
DISABLED_BY_HAND = gettext_noop("By hand.")
"""The reason of an endpoint that was disabled in the console."""
DISABLED_BY_APPLICATION = gettext_noop("By an application.")
ON_PURPOSE = frozenset({DISABLED_BY_HAND, DISABLED_BY_APPLICATION})
"""Reasons that are no finding."""
OVERLAP = timedelta(hours=24)
"""How long a replaced secret still signs, in addition to the new one."""


def url_error(url: str) -> str:
    """Return why a URL cannot be an endpoint's; empty if it can.

    The addresses that its host name resolves to are checked at each request.
    """
    origin = origin_of(url)
    if origin is None or origin.scheme not in ("http", "https") or not _URL.fullmatch(url):
        return gettext("must be an address like https://hooks.example.com/rme")
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    if reason := policy.refuses(origin):
        return reason
    if _is_ip_address(origin.host) and not policy.allows(origin.host, origin.port):
        return gettext("the address is not public")
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
    """Replace an endpoint's secret and return the new one. The old one signs for another
    day, unless it can't be decrypted.
    """
    secret = signatures.new_secret()
    try:
        former = row.secret
    except UnreadableSecret:
        former = ""
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        former_secret=former, former_until=Now() + OVERLAP if former else None, secret=secret
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


def try_now(row: WebhookEndpoint) -> None:
    """End the backoff of an endpoint that fails, so that what is due is sent at once."""
    failing = WebhookEndpoint.objects.filter(pk=row.pk, failures__gt=0)
    failing.update(free_at=Now(), fence=F("fence") + 1)


def disable(row: WebhookEndpoint, reason: str = DISABLED_BY_HAND) -> None:
    """Disable an endpoint: it receives nothing until it is enabled again."""
    WebhookEndpoint.objects.filter(pk=row.pk).update(enabled=False, disabled_reason=reason)
