"""A client of rme: messages, consent, suppressions, devices and webhooks.

    from rme_client import Client

    with Client("https://msg.example.com", client_id="…", client_secret="…") as rme:
        rme.send_message({...})

`AsyncClient` has the same calls as coroutines. `rme_client.types` has the types of bodies and
answers, `rme_client.webhooks` verifies what the service sends to an endpoint.
"""

from rme_client.client import AsyncClient, Client
from rme_client.errors import ApiError, ConnectionFailed, RateLimited, RmeError

__all__ = ["ApiError", "AsyncClient", "Client", "ConnectionFailed", "RateLimited", "RmeError"]
