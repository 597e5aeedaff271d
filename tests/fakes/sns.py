"""Amazon SNS on loopback: a certificate of its own making, and messages that it signs."""

import base64
import socket
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from tests.fakes import http1
from tests.fakes.http1 import Http1Server, Seen
from tests.fakes.providers import Call
from tests.fakes.tls import server_context

TOPIC = "arn:aws:sns:eu-west-1:123456789012:rme"
CERTIFICATE = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
_DAY = timedelta(days=1)


@lru_cache(maxsize=2)
def _key(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@lru_cache(maxsize=1)
def _certificate() -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(_key(0).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .sign(_key(0), hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


class Sns(Http1Server):
    """Serve the certificate and take confirmations; `seen` has what was asked for."""

    def __init__(self) -> None:
        super().__init__(self._answer, tls=server_context())
        self.body = _certificate()

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"

    def _answer(self, connection: socket.socket, seen: Seen) -> None:
        known = seen.path == CERTIFICATE or "ConfirmSubscription" in seen.path
        http1.respond(connection, 200 if known else 404, self.body if known else b"")

    def notification(self, event: Any, **changes: Any) -> dict[str, Any]:
        """Return a message with an event of SES, not signed yet."""
        text = event if isinstance(event, str) else orjson.dumps(event).decode()
        return {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": TOPIC,
            "Message": text,
            "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.123Z", time.gmtime()),
            "SignatureVersion": "2",
            "SigningCertURL": f"{self.origin}{CERTIFICATE}",
            **changes,
        }

    def confirmation(self, **changes: Any) -> dict[str, Any]:
        """Return the message by which SNS asks whether a subscription is wanted."""
        query = f"Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f37"
        return self.notification(
            "You have chosen to subscribe to the topic.",
            Type="SubscriptionConfirmation",
            Token="2336412f37",
            SubscribeURL=f"{self.origin}/?{query}",
            **changes,
        )


def signed(message: dict[str, Any], key: int = 0, **after: Any) -> Call:
    """Sign a message as its version says, and change it after that."""
    names = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
    if message["Type"] != "Notification":
        names = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    content = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
    digest = hashes.SHA1() if message["SignatureVersion"] == "1" else hashes.SHA256()
    mark = _key(key).sign(content.encode(), padding.PKCS1v15(), digest)
    body = {**message, "Signature": base64.b64encode(mark).decode(), **after}
    headers = {"content-type": "text/plain; charset=UTF-8"}
    return Call("POST", "", headers, orjson.dumps(body))
