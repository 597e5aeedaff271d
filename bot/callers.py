"""Who calls: an organization by its id, proved by an API key that travelled safely."""

from django.conf import settings
from django.http import HttpRequest

from bot.envelope import Failure, Unauthorized
from rme.core import logs
from rme.core.http import edge
from rme.core.http.proxies import address_of
from rme.core.redis.rate_limits import Limit, limiter
from rme.tenants import api_keys, call_limits
from rme.tenants.api_keys import KeyRecord


def caller_of(request: HttpRequest, organization_id: str) -> KeyRecord:
    """Give the key that a call came with. One statement.

    Raises Failure: 401, or 429 where too many keys of one address failed.
    """
    address = address_of(request)
    key = None
    if organization_id and _safe(request):
        text = request.headers.get("X-API-Key", "").strip()
        key = api_keys.verify(text, organization_id, address) if text else None
    if key is None:
        raise _refuse(address)
    logs.caller.set({"organization_id": key.organization.id, "api_key": key.public_id})
    return key


def meter(key: KeyRecord) -> None:
    """Hold a call against its organization's limits. Raises Failure (429)."""
    decision = call_limits.take(key.organization, "bot")
    if not decision.allowed:
        raise too_many(decision.retry_after)


def too_many(retry_after: int) -> Failure:
    """Make the refusal of a call too many."""
    told = {"Retry-After": str(retry_after)}
    return Failure(429, "too_many_calls", "Too many calls; see Retry-After", headers=told)


def _refuse(address: str) -> Failure:
    """Count a failed key. Right keys are looked at whatever came before: many bots of many
    organizations share one address, their builder's.
    """
    limit = Limit(settings.BOT_FAILURES_PER_MINUTE, 60)
    decision = limiter.take(f"bot:failures:{address}", limit)
    return Unauthorized() if decision.allowed else too_many(decision.retry_after)


def _safe(request: HttpRequest) -> bool:
    """Check whether the key travelled by TLS, or never left this machine."""
    if settings.TLS_PROXY:
        return not edge.came_in_clear(request)
    return request.is_secure() or edge.is_from_here(request)
