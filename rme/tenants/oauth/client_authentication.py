"""Authentication of clients: by secret, or by a signed assertion."""

import hashlib
import secrets
from dataclasses import replace
from typing import Any

from django.contrib.auth.hashers import BasePasswordHasher

from rme.core.db import clock
from rme.tenants import organizations
from rme.tenants.oauth import assertions, clients, throttle
from rme.tenants.oauth.assertions import BadAssertion, UnverifiedAssertion
from rme.tenants.oauth.clients import Client, Credentials


class SecretHasher(BasePasswordHasher):
    """SHA-256 of a random secret.

    A slow hash protects passwords that people choose. Client secrets have 256 random bits and
    cannot be guessed, however fast the hash is (NIST SP 800-63B §5.1.1.2 requires slow hashes below
    112 bits). A slow hash would take 300 ms of CPU for each token.
    """

    algorithm = "random_secret_sha256"

    def salt(self) -> str:
        return ""

    def encode(self, password: str, salt: str) -> str:
        return f"{self.algorithm}${hashlib.sha256(password.encode()).hexdigest()}"

    def verify(self, password: str, encoded: str) -> bool:
        return secrets.compare_digest(self.encode(password, ""), encoded)

    def decode(self, encoded: str) -> dict[str, object]:
        algorithm, digest = encoded.split("$", 1)
        return {"algorithm": algorithm, "hash": digest, "salt": ""}

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing: the hash has no iterations."""


_hasher = SecretHasher()
_NO_CLIENT = _hasher.encode(secrets.token_urlsafe(32), "")
"""Compared with the secret of an unknown client, so that both failures take the same time."""


def by_secret(credentials: Credentials, address: str) -> Client | None:
    """Return the client with these credentials, or None.

    Raise Throttled, or what `organizations.require_served` raises.

    The secret may be the one that was replaced, until its time is over; its tokens end then.
    """
    throttle.check(address, credentials.client_id)
    client = clients.find(credentials.client_id)
    secret = credentials.secret or ""
    is_current = _hasher.verify(secret, client.secret if client else _NO_CLIENT)
    # Compared in any case, so that the time is the same.
    former = _hasher.verify(secret, (client.former_secret if client else "") or _NO_CLIENT)
    if client and (is_current or former):
        organizations.require_served(client.organization_id)
    if client and is_current:
        clients.mark_used(client, "secret_used_at")
    elif client and former and client.former_until and client.former_until > clock.now():
        clients.mark_used(client, "former_used_at")
        client = replace(client, tokens_until=client.former_until)
    else:
        client = None
    return _count(client, credentials.client_id, address)


def by_assertion(assertion: UnverifiedAssertion, address: str) -> Client:
    """Return the client that signed an assertion.

    Raise BadAssertion, Throttled, or what `organizations.require_served` raises.

    The error is the same for an unknown client and for a wrong signature.
    """
    throttle.check(address, assertion.client_id)
    client = clients.find(assertion.client_id)
    signed = assertions.is_signed_by(assertion, client)
    if client and signed:
        organizations.require_served(client.organization_id)
    if client and signed:
        clients.mark_used(client, "key_used_at")
    authenticated = _count(client if signed else None, assertion.client_id, address)
    if authenticated is None:
        raise BadAssertion("the signature is not one of the application's keys'")
    return authenticated


def _count(client: Client | None, client_id: str, address: str) -> Client | None:
    """Count a success or a failure for the rate limits; return the client unchanged."""
    if client is None:
        throttle.count_failure(address, client_id)
    else:
        throttle.count_client(client_id)
    return client
