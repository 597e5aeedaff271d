"""Apple's push service on loopback: HTTP/2, answers by the device's token."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem

TEAM, KEY = "TEAM123456", "KEY1234567"
GOOD = "ab" * 32


@lru_cache(maxsize=1)
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@lru_cache(maxsize=1)
def key_pem() -> str:
    return (
        key()
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


@dataclass
class Apple:
    """The requests that Apple received, and its answers: by token, else 200."""

    answers: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    """Provider tokens that have expired."""
    keys: dict[int, str] = field(default_factory=dict)
    """By connection, the key that it saw first: Apple binds it to that one."""
    server: Http2Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Http2Server(self._answer)

    @property
    def url(self) -> str:
        return self.server.url.rstrip("/")

    @property
    def seen(self) -> list[Stream]:
        return self.server.seen

    @property
    def provider_tokens(self) -> set[str]:
        return {s.headers["authorization"].removeprefix("bearer ") for s in self.seen}

    def settings(self, **given: Any) -> dict[str, Any]:
        return settings(self.server.port, ca_pem(), 5.0, **given)

    def _answer(self, connection: Http2Connection, stream: Stream) -> None:
        provider_token = stream.headers["authorization"].removeprefix("bearer ")
        claims = jwt.decode(provider_token, key().public_key(), algorithms=["ES256"])
        assert claims["iss"] == TEAM
        assert abs(claims["iat"] - time.time()) < 3600
        token = stream.headers[":path"].removeprefix("/3/device/")
        status, content = self.answers.get(token, (200, {}))
        if provider_token in self.expired:
            status, content = 403, {"reason": "ExpiredProviderToken"}
        used = jwt.get_unverified_header(provider_token)["kid"]
        if self.keys.setdefault(stream.connection, used) != used:
            status, content = 403, {"reason": "UnrelatedKeyIdInToken"}
        identifier = stream.headers["apns-id"]
        connection.respond(
            stream, status, orjson.dumps(content) if content else b"", apns_id=identifier
        )


def settings(port: int, ca: str, timeout: float, **given: Any) -> dict[str, Any]:
    """Return an account's settings for a service on this machine."""
    return {
        "team_id": TEAM,
        "key_id": KEY,
        "private_key": key_pem(),
        "topic": "com.example.app",
        "production_url": f"https://localhost:{port}",
        "sandbox_url": f"https://localhost:{port}",
        "ca_pem": ca,
        "timeout": timeout,
        **given,
    }


@contextmanager
def apple(**answers: tuple[int, dict[str, Any]]) -> Iterator[Apple]:
    """Serve while the context is open. `answers`: status and body by token."""
    service = Apple(dict(answers))
    with service.server:
        yield service
