"""Checking the signature of an Amazon SNS message, and confirming a subscription.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
The certificate is fetched only from SNS's own host, over the transport, and cached for a day.
"""

import base64
import binascii
import re
from collections.abc import Mapping

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from rme.core.cache import TtlCache
from rme.transport.messages import Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

NOTIFICATION = "Notification"
CONFIRMATION = "SubscriptionConfirmation"
_SIGNED = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: (
        *("Message", "MessageId", "SubscribeURL", "Timestamp"),
        *("Token", "TopicArn", "Type"),
    ),
    "UnsubscribeConfirmation": (
        *("Message", "MessageId", "SubscribeURL", "Timestamp"),
        *("Token", "TopicArn", "Type"),
    ),
}
"""By type: the fields that are signed, in this order."""
_HASHES: dict[str, type[hashes.SHA1 | hashes.SHA256]] = {"1": hashes.SHA1, "2": hashes.SHA256}
_CERTIFICATE = re.compile(r"/SimpleNotificationService-[0-9a-f]{16,64}\.pem")
_CONFIRM = re.compile(r"/\?Action=ConfirmSubscription&[A-Za-z0-9&=%._:~-]{1,2000}")
_TIMEOUT = 5.0

_keys: TtlCache[tuple[str, str], RSAPublicKey] = TtlCache(seconds=24 * 3600, size=64)


def is_signed(
    message: Mapping[str, object], origin: str, transport: Performer, ca_pem: str
) -> bool:
    """Return whether SNS at `origin` (`https://sns.eu-west-1.amazonaws.com`) signed a message."""
    names = _SIGNED.get(str(message.get("Type")))
    version = _HASHES.get(str(message.get("SignatureVersion")))
    path = _path_below(origin, message.get("SigningCertURL"))
    if names is None or version is None or not _CERTIFICATE.fullmatch(path):
        return False
    content = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
    key = _keys.get((origin, path), lambda: _fetch_key(f"{origin}{path}", transport, ca_pem))
    if key is None:
        return False
    try:
        signature = base64.b64decode(str(message.get("Signature")), validate=True)
        data = content.encode(errors="replace")
        key.verify(signature, data, padding.PKCS1v15(), version())
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def _fetch_key(url: str, transport: Performer, ca_pem: str) -> RSAPublicKey | None:
    (reply,) = transport.perform([_get(url, ca_pem)])
    if not isinstance(reply, Reply) or reply.status != 200:
        log.warning("sns.certificate")
        return None
    try:
        key = x509.load_pem_x509_certificate(reply.body).public_key()
    except ValueError:
        return None
    return key if isinstance(key, RSAPublicKey) else None


def confirm(message: Mapping[str, object], origin: str, transport: Performer, ca_pem: str) -> bool:
    """Confirm a subscription at the URL that SNS names, if it has SNS's origin."""
    path = _path_below(origin, message.get("SubscribeURL"))
    if not _CONFIRM.fullmatch(path):
        return False
    (reply,) = transport.perform([_get(f"{origin}{path}", ca_pem)])
    is_confirmed = isinstance(reply, Reply) and reply.status == 200
    log.info("sns.confirmed" if is_confirmed else "sns.not_confirmed")
    return is_confirmed


def _path_below(origin: str, url: object) -> str:
    """Return what follows an origin in a URL; nothing if the URL has another origin."""
    text = url if isinstance(url, str) else ""
    return text.removeprefix(origin) if text.startswith(f"{origin}/") else ""


def _get(url: str, ca_pem: str) -> Request:
    return Request(url=url, method="GET", timeout=_TIMEOUT, max_response=64 * 1024, ca_pem=ca_pem)
