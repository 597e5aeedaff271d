"""Authentication of bot calls: an organization id and its API key, sent over TLS."""

from django.conf import settings
from django.http import HttpRequest

from bot.envelope import BotFailure, UnauthorizedCall
from rme.core import logs
from rme.core.http import edge
from rme.core.http.edge import address_of
from rme.core.redis.rate_limits import Limit, limiter
from rme.tenants import organizations
from rme.tenants.oauth import api_keys, call_limits
from rme.tenants.oauth.api_keys import KeyRecord


def authenticate(request: HttpRequest, organization_id: str) -> KeyRecord:
    """Return the API key of a call. One statement.

    Raise BotFailure: 401, or 429 if too many calls from this address had a wrong key. Raise what
    `organizations.require_served` raises.
    """
    address = address_of(request)
    key = None
    if organization_id and _safe(request):
        text = request.headers.get("X-API-Key", "").strip()
        key = api_keys.verify(text, organization_id, address) if text else None
    if key is None:
        raise _refuse(address)
    organizations.require_served(key.organization.id)
    logs.caller.set({"organization_id": key.organization.id, "api_key": key.public_id})
    return key


def check_limits(key: KeyRecord) -> None:
    """Count a call against its organization's rate limits. Raise BotFailure (429) above them."""
    decision = call_limits.take(key.organization, "bot")
    if not decision.allowed:
        raise too_many_calls(decision.retry_after)


def too_many_calls(retry_after: int) -> BotFailure:
    """Return the failure for a call above a rate limit; `retry_after` is in seconds."""
    headers = {"Retry-After": str(retry_after)}
    return BotFailure(429, "too_many_calls", "Too many calls; see Retry-After", headers=headers)


def _refuse(address: str) -> BotFailure:
    """Count a wrong key and return the failure.

    A right key is accepted even from an address above the limit: bots of many organizations share
    the address of their bot builder.
    """
    limit = Limit(settings.BOT_FAILURES_PER_MINUTE, 60)
    decision = limiter.take(f"bot:failures:{address}", limit)
    return UnauthorizedCall() if decision.allowed else too_many_calls(decision.retry_after)


def _safe(request: HttpRequest) -> bool:
    """Return whether the key was sent over TLS or from this machine."""
    if settings.TLS_PROXY:
        return not edge.came_in_clear(request)
    return request.is_secure() or edge.is_from_here(request)
