"""How a client proves who it is: by its secret, or by an assertion that it signed."""

import secrets

from rme.tenants.oauth import assertions, clients, throttle
from rme.tenants.oauth.assertions import BadAssertion, Checked
from rme.tenants.oauth.clients import Client, Credentials
from rme.tenants.oauth.hasher import SecretHasher

_hasher = SecretHasher()
_NOBODY = _hasher.encode(secrets.token_urlsafe(32), "")
"""What an unknown client's secret is compared with, so that it takes as long as a wrong one."""


def by_secret(given: Credentials, address: str) -> Client | None:
    """Find the client that these are the credentials of. Raises Throttled."""
    throttle.check(address, given.client_id)
    client = clients.find(given.client_id)
    same = _hasher.verify(given.secret or "", client.secret if client else _NOBODY)
    return _concluded(client if same else None, given.client_id, address)


def by_assertion(checked: Checked, address: str) -> Client:
    """Find the client that signed an assertion. Raises BadAssertion, Throttled.

    Whether there is no such client or the signature is wrong is not told apart.
    """
    throttle.check(address, checked.client_id)
    client = clients.find(checked.client_id)
    signed = assertions.is_signed_by(checked, client)
    proved = _concluded(client if signed else None, checked.client_id, address)
    if proved is None:
        raise BadAssertion("the signature is not one of the application's keys'")
    return proved


def _concluded(client: Client | None, client_id: str, address: str) -> Client | None:
    if client is None:
        throttle.count_failure(address, client_id)
    else:
        throttle.count_client(client_id)
    return client
