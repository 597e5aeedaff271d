"""A browser's push service on loopback, which reads what it is sent as the browser would."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from push.base64url import decode
from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem
from tests.push.subscriptions import Browser


def decrypt(body: bytes, browser: Browser) -> bytes:
    """Read a message as RFC 8291 §4 has it, from the browser's side."""
    salt, (size, length) = body[:16], struct.unpack("!IB", body[16:21])
    public, sealed = body[21 : 21 + length], body[21 + length :]
    assert len(sealed) <= size
    sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    shared = browser.private.exchange(ec.ECDH(), sender)
    info = b"WebPush: info\0" + browser.public + public
    keying = HKDF(hashes.SHA256(), 32, browser.auth, info).derive(shared)
    key = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(keying)
    nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(keying)
    padded = AESGCM(key).decrypt(nonce, sealed, None)
    text = padded.rstrip(b"\0")
    assert text[-1:] == b"\x02"
    return text[:-1]


@dataclass
class PushService:
    """What the service was sent, and what it answers: by the endpoint's path, else 201."""

    answers: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)
    server: Http2Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Http2Server(self._answer)

    @property
    def seen(self) -> list[Stream]:
        return self.server.seen

    def settings(self, **given: Any) -> dict[str, Any]:
        return {"subject": "mailto:ops@example.com", "ca_pem": ca_pem(), "timeout": 5.0, **given}

    def browser(self, name: str = "device") -> Browser:
        return Browser(f"{self.server.url}{name}")

    def claims(self, stream: Stream) -> dict[str, Any]:
        """Check the VAPID header (RFC 8292) and give what it claims."""
        scheme, _, given = stream.headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in given.split(","))
        assert scheme == "vapid"
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(parts["k"]))
        claims: dict[str, Any] = jwt.decode(
            parts["t"], key, algorithms=["ES256"], audience=self.server.url.rstrip("/")
        )
        return claims

    def read(self, stream: Stream, browser: Browser) -> Any:
        return orjson.loads(decrypt(bytes(stream.body), browser))

    def _answer(self, connection: Http2Connection, stream: Stream) -> None:
        self.claims(stream)
        name = stream.headers[":path"].removeprefix("/")
        status, body, headers = self.answers.get(name, (201, b"", {"location": "/m/1"}))
        connection.respond(stream, status, body, **headers)


@contextmanager
def push_service(**answers: Any) -> Iterator[PushService]:
    """Serve while the context is open. `answers`: status, body and headers by path."""
    service = PushService({name: (*given, b"", {})[:3] for name, given in answers.items()})
    with service.server:
        yield service
