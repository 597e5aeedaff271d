"""Parsing a device's token: what its platform gave the app, in the form in which it is stored.

| platform | token | stored as |
|---|---|---|
| IOS | hex, 64 digits or more | lower case |
| ANDROID | an FCM registration token or installation id | as it is |
| WEB | a PushSubscription, as an object or as JSON text | JSON: endpoint and keys |
| PLATFORM | the platform's user id | as it is |

A token that contains `simulator-` is not one of Apple's; it is accepted for the simulator.
"""

import hashlib
import re
from dataclasses import dataclass, field

import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings

from push import base64url, endpoints
from push.models import Device, token_digest
from rme.core.errors import InvalidPayload
from rme.transport.addresses import AddressPolicy

LONGEST = 4096
_PATTERNS = {
    Device.Platform.IOS: (
        re.compile(r"[0-9A-Fa-f]{64,4096}|(?=.*?simulator-)[\x21-\x7e]++"),
        "must be hex, 64 digits or more",
    ),
    Device.Platform.ANDROID: (
        re.compile(r"[\x21-\x7e]{1,4096}"),
        "must be an FCM registration token or installation id",
    ),
    Device.Platform.PLATFORM: (
        re.compile(r"[\x21-\x7e]{1,64}"),
        "must be the platform's id of a user",
    ),
}


_NO_TOKENS = frozenset(
    {"null", "undefined", "none", "nil", "(null)", "<null>", "nan", "false", "[object object]"}
)
"""Texts that apps send instead of a missing token, in lower case."""


@dataclass(frozen=True, slots=True)
class DeviceToken:
    """A token as it is stored, and the digest by which it is found."""

    text: str = field(repr=False)
    digest: str

    def in_test(self) -> "DeviceToken":
        """Return the token of a TEST application: another digest makes it another device."""
        return DeviceToken(self.text, token_digest(f"test:{self.text}"))


def parse(platform: str, token: object) -> DeviceToken:
    """Return a token (a text, or an object for WEB). Raises InvalidPayload for its field."""
    if platform == Device.Platform.WEB:
        return _subscription(token)
    pattern, message = _PATTERNS[Device.Platform(platform)]
    if not isinstance(token, str):
        raise InvalidPayload.at("token", "must be a string")
    if token.strip().lower() in _NO_TOKENS:
        raise InvalidPayload.at("token", f"is the text {token.strip()}: the app had no token")
    if len(token) > LONGEST or not pattern.fullmatch(token):
        raise InvalidPayload.at("token", message)
    text = token.lower() if platform == Device.Platform.IOS else token
    return DeviceToken(text, token_digest(text))


def _subscription(subscription: object) -> DeviceToken:
    """Return a PushSubscription (W3C Push API §8). Its endpoint identifies it."""
    if isinstance(subscription, str):
        try:
            subscription = orjson.loads(subscription)
        except orjson.JSONDecodeError:
            subscription = None
    if not isinstance(subscription, dict) or not isinstance(subscription.get("keys"), dict):
        raise InvalidPayload.at("token", "must be a PushSubscription: endpoint and keys")
    unknown = sorted({str(name) for name in subscription} - {"endpoint", "keys", "expirationTime"})
    if unknown:
        raise InvalidPayload.at(f"token.{unknown[0]}", "unknown field")
    expiration = subscription.get("expirationTime")
    is_number = isinstance(expiration, int | float) and not isinstance(expiration, bool)
    if expiration is not None and not is_number:
        raise InvalidPayload.at("token.expirationTime", "must be a number")
    endpoint = subscription.get("endpoint")
    error = "must be a string"
    if isinstance(endpoint, str):
        error = endpoints.url_error(endpoint, AddressPolicy(settings.OUTBOUND_OPEN_HOSTS))
    if error:
        raise InvalidPayload.at("token.endpoint", error)
    stored_form = {"endpoint": endpoint, "keys": _keys(subscription["keys"])}
    text = orjson.dumps(stored_form, option=orjson.OPT_SORT_KEYS).decode()
    return DeviceToken(text, hashlib.sha256(str(endpoint).encode()).hexdigest())


def _keys(keys: dict[str, object]) -> dict[str, str]:
    """Check and return the keys of RFC 8291 §2: a point on P-256, and 16 bytes."""
    for name, check, message in (
        ("p256dh", _is_point, "must be a public key on P-256, base64url"),
        ("auth", lambda key: len(key) == 16, "must be 16 bytes, base64url"),
    ):
        if not check(base64url.decode(keys.get(name))):
            raise InvalidPayload.at(f"token.keys.{name}", message)
    return {"auth": str(keys["auth"]), "p256dh": str(keys["p256dh"])}


def _is_point(key: bytes) -> bool:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        return False
    return len(key) == 65
