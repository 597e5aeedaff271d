"""Rate limits of the authorization server: per address, per client, and for failures.

A client's calls are counted after its authentication, and failures by address and client together.
So a stranger who knows a client's id can neither use up its limit nor lock it out.

While Redis is away, PostgreSQL counts failures (`guess_limits`), and calls are not limited.
"""

import hashlib

from django.conf import settings
from oauthlib.oauth2.rfc6749.errors import OAuth2Error

from rme.core.redis.rate_limits import Limit, LimitDecision, limiter
from rme.tenants.access.limits import guess_limits


class Throttled(OAuth2Error):
    """Too many calls (RFC 6585 §4), in the shape of RFC 6749 §5.2."""

    error = "temporarily_unavailable"
    description = "There were too many calls; see Retry-After."
    status_code = 429

    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)}


def count_call(address: str) -> None:
    """Count a call from an address. Raise Throttled."""
    _require(limiter.take(f"token:address:{address}", _calls()))


def count_client(client_id: str) -> None:
    """Count a call of an authenticated client. Raise Throttled."""
    _require(limiter.take(f"token:client:{client_id}", _calls()))


def check(address: str, client_id: str) -> None:
    """Raise Throttled if an address has failed too often as this client."""
    _require(guess_limits.check(_failures(address, client_id), _failure_limit()))


def count_failure(address: str, client_id: str) -> None:
    """Count a failed authentication."""
    guess_limits.take(_failures(address, client_id), _failure_limit())


def _require(decision: LimitDecision) -> None:
    if not decision.allowed:
        raise Throttled(decision.retry_after)


def _failures(address: str, client_id: str) -> str:
    # A digest, since a caller may claim any text, of any length.
    claimed = hashlib.sha256(client_id.encode("utf-8", "replace")).hexdigest()[:32]
    return f"token:failures:{address}:{claimed}"


def _calls() -> Limit:
    return Limit(settings.TOKENS_PER_MINUTE, 60)


def _failure_limit() -> Limit:
    return Limit(settings.TOKEN_FAILURES_PER_MINUTE, 60)
