"""Authentication of clients: by secret, or by a signed assertion."""

import secrets

from rme.tenants.oauth import assertions, clients, throttle
from rme.tenants.oauth.assertions import BadAssertion, UnverifiedAssertion
from rme.tenants.oauth.clients import Client, Credentials
from rme.tenants.oauth.hasher import SecretHasher

_hasher = SecretHasher()
_NO_CLIENT = _hasher.encode(secrets.token_urlsafe(32), "")
"""Compared with the secret of an unknown client, so that both failures take the same time."""


def by_secret(given: Credentials, address: str) -> Client | None:
    """Return the client with these credentials, or None. Raise Throttled."""
    throttle.check(address, given.client_id)
    client = clients.find(given.client_id)
    same = _hasher.verify(given.secret or "", client.secret if client else _NO_CLIENT)
    return _count(client if same else None, given.client_id, address)


def by_assertion(assertion: UnverifiedAssertion, address: str) -> Client:
    """Return the client that signed an assertion. Raise BadAssertion or Throttled.

    The error is the same for an unknown client and for a wrong signature.
    """
    throttle.check(address, assertion.client_id)
    client = clients.find(assertion.client_id)
    signed = assertions.is_signed_by(assertion, client)
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
