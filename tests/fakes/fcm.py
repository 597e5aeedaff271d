"""Google on loopback: its token endpoint and FCM, over HTTP/2."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem

PROJECT = "example-project"


@lru_cache(maxsize=1)
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


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


def account(port: int, **given: Any) -> str:
    """Return a service account's key file whose tokens come from this machine."""
    return orjson.dumps(
        {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "key-1",
            "private_key": key_pem(),
            "client_email": "push@example-project.iam.gserviceaccount.com",
            "token_uri": f"https://localhost:{port}/token",
            **given,
        }
    ).decode()


def settings(port: int, ca: str, timeout: float) -> dict[str, Any]:
    return {
        "service_account_json": account(port),
        "base_url": f"https://localhost:{port}",
        "ca_pem": ca,
        "timeout": timeout,
    }


@dataclass
class Google:
    """What Google was sent, and what it answers: by the device's token, else 200."""

    answers: dict[str, tuple[int, Any, dict[str, str]]] = field(default_factory=dict)
    login: tuple[int, Any] | None = None
    """What the token endpoint answers instead of a token."""
    life: int = 3599
    refused: set[str] = field(default_factory=set)
    """Access tokens that are not taken any more."""
    logins: int = 0
    sent: list[Stream] = field(default_factory=list)
    server: Http2Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Http2Server(self._answer)

    def settings(self) -> dict[str, Any]:
        return settings(self.server.port, ca_pem(), 5.0)

    def _answer(self, connection: Http2Connection, stream: Stream) -> None:
        if stream.headers[":path"] == "/token":
            status, content = self._log_in(stream)
            connection.respond(stream, status, orjson.dumps(content))
            return
        assert stream.headers[":path"] == f"/v1/projects/{PROJECT}/messages:send"
        self.sent.append(stream)
        message = orjson.loads(bytes(stream.body))["message"]
        name = {"name": f"projects/{PROJECT}/messages/{len(self.sent)}"}
        token = message.get("token") or message.get("fid") or message["topic"]
        status, content, headers = self.answers.get(token, (200, name, {}))
        if stream.headers["authorization"].removeprefix("Bearer ") in self.refused:
            status, content = 401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}}
        body = content if isinstance(content, bytes) else orjson.dumps(content)
        connection.respond(stream, status, body, **headers)

    def _log_in(self, stream: Stream) -> tuple[int, Any]:
        self.logins += 1
        form = parse_qs(bytes(stream.body).decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        claims = jwt.decode(
            form["assertion"][0],
            key().public_key(),
            algorithms=["RS256"],
            audience=f"https://localhost:{self.server.port}/token",
        )
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        return self.login or (
            200,
            {"access_token": f"access-{self.logins}", "expires_in": self.life},
        )


@contextmanager
def google(**answers: Any) -> Iterator[Google]:
    """Serve while the context is open. `answers`: status, body and headers by token."""
    service = Google({token: (*given, {})[:3] for token, given in answers.items()})
    with service.server:
        yield service
