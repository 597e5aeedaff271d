"""Apple Push Push service: HTTP/2, one provider token a team and key.

https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns
ANSWERS below is the table of what its reasons mean.
"""

import re
from collections.abc import Sequence
from enum import Enum
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Annotated, Any, ClassVar

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import Field, SecretStr, StringConstraints, field_validator

from push.providers import access_tokens
from push.providers.access_tokens import Life, Token
from push.providers.base import (
    DAY,
    Again,
    Answer,
    Backoff,
    Progress,
    Sender,
    SenderSettings,
    Shot,
    now,
    read_object,
    retry_after,
    too_large,
)
from push.providers.signing import es256
from rme.core.credentials import DESTINATION, CaPem
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Push
from rme.transport import CommonHeaders, Reply, Request, Transport

PAYLOAD_LIMIT = 4096
COLLAPSE_LIMIT = 64
TOKEN_LIFE = Life(renew=40 * 60, end=55 * 60, least=20 * 60)
"""Apple wants a new one after 20 minutes at the earliest, and after 60 at the latest."""
TOKEN_STEP = 20 * 60
LATER = 15 * 60.0
"""When Apple wants to see again what it could not take."""
DEVICE_DELAY = 60.0
"""How long a device is left alone that was sent too much."""


class Verdict(Enum):
    """What a reason means."""

    DEAD_IF_PROVEN = "the token is dead, if this credential ever worked; else it is the wrong one"
    DEAD_IF_TOPIC_PROVEN = "the same, of credential and topic"
    DEAD_SINCE = "the token is dead since `timestamp`"
    CONFIG = "a person must act"
    PAYLOAD = "this content never"
    RETRY = "certainly not taken; over another connection it may work"
    RENEW = "our provider token has expired"
    BACKOFF = "the credential is to be slowed down"
    DEVICE = "this device is sent too much"
    BUSY = "Apple cannot for now"


V = Verdict
ANSWERS: dict[tuple[int, str], Verdict] = {
    (400, "BadDeviceToken"): V.DEAD_IF_PROVEN,
    (400, "DeviceTokenNotForTopic"): V.DEAD_IF_TOPIC_PROVEN,
    (400, "TopicDisallowed"): V.CONFIG,
    (400, "BadTopic"): V.CONFIG,
    (400, "MissingTopic"): V.CONFIG,
    (400, "BadCollapseId"): V.PAYLOAD,
    (400, "BadExpirationDate"): V.PAYLOAD,
    (400, "BadMessageId"): V.PAYLOAD,
    (400, "BadPriority"): V.PAYLOAD,
    (400, "InvalidPushType"): V.PAYLOAD,
    (400, "DuplicateHeaders"): V.PAYLOAD,
    (400, "MissingDeviceToken"): V.PAYLOAD,
    (400, "PayloadEmpty"): V.PAYLOAD,
    (400, "IdleTimeout"): V.RETRY,
    (403, "ExpiredProviderToken"): V.RENEW,
    (403, "InvalidProviderToken"): V.CONFIG,
    (403, "MissingProviderToken"): V.CONFIG,
    (403, "BadCertificate"): V.CONFIG,
    (403, "BadCertificateEnvironment"): V.CONFIG,
    (403, "BadEnvironmentKeyIdInToken"): V.CONFIG,
    (403, "Forbidden"): V.CONFIG,
    (403, "UnrelatedKeyIdInToken"): V.RETRY,
    (404, "BadPath"): V.CONFIG,
    (405, "MethodNotAllowed"): V.CONFIG,
    (410, "Unregistered"): V.DEAD_SINCE,
    (410, "ExpiredToken"): V.DEAD_SINCE,
    (413, "PayloadTooLarge"): V.PAYLOAD,
    (429, "TooManyProviderTokenUpdates"): V.BACKOFF,
    (429, "TooManyRequests"): V.DEVICE,
    (500, "InternalServerError"): V.BUSY,
    (503, "ServiceUnavailable"): V.BUSY,
    (503, "Shutdown"): V.RETRY,
}
_RECONNECT = frozenset(reason for (_, reason), verdict in ANSWERS.items() if verdict is V.RETRY)
_OTHERWISE = {
    400: V.PAYLOAD,
    403: V.CONFIG,
    404: V.CONFIG,
    405: V.CONFIG,
    410: V.DEAD_SINCE,
    413: V.PAYLOAD,
    429: V.BACKOFF,
    500: V.BUSY,
    503: V.BUSY,
}
"""What a status means with a reason that the table does not know."""

_END = 253_402_300_800_000
"""The year 10,000 in ms: beyond it there is no calendar."""
_TOKEN = re.compile(r"[0-9a-f]{64,4096}")
_Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{10}$")]


class ApnsSettings(SenderSettings):
    """A key of an Apple developer team."""

    team_id: _Identifier = Field(description="Ten letters and digits.")
    key_id: _Identifier = Field(description="Ten letters and digits.")
    private_key: SecretStr = Field(description="The .p8 file.")
    topic: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", min_length=1, max_length=200)
    ] = Field(description="The app's bundle id, for devices that name no app.")
    production_url: Annotated[str, DESTINATION] = "https://api.push.apple.com"
    sandbox_url: Annotated[str, DESTINATION] = "https://api.sandbox.push.apple.com"
    ca_pem: CaPem = ""
    timeout: Annotated[float, Field(gt=0, le=25)] = 10.0

    @field_validator("private_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr) -> SecretStr:
        _load(value.get_secret_value())
        return value


@lru_cache(maxsize=64)
def _load(pem: str) -> ec.EllipticCurvePrivateKey:
    """Read a .p8. Raises ValueError, which tells nothing of it."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise ValueError("must be a private key on P-256 in PEM")
    return key


class Apns(Sender):
    """Push to iOS apps."""

    kind: ClassVar[str] = "apns"
    label: ClassVar[str] = "Apple Push Push service"
    platforms: ClassVar[frozenset[str]] = frozenset({"IOS"})
    refused: ClassVar[tuple[str, str] | None] = (
        "APNS_KEY_REFUSED",
        "{} is refused by Apple: its key, team or topic is wrong.",
    )
    Settings: ClassVar[type[SenderSettings]] = ApnsSettings
    settings: ApnsSettings

    @cached_property
    def _name(self) -> str:
        given = self.settings
        key = given.private_key.get_secret_value()
        return f"apns:{access_tokens.name_of(given.team_id, given.key_id, key)}"

    def credential(self, transport: Transport, refused: str) -> str:
        """Give the provider token: signed here, shared by all processes."""
        return access_tokens.get(self._name, TOKEN_LIFE, self._sign, refused=refused).text

    def _sign(self) -> Token:
        """Make the token of these twenty minutes.

        It is the same whoever makes it: Apple sees no more of them while Redis is away, and each
        process makes its own.
        """
        given = self.settings
        moment = now() // TOKEN_STEP * TOKEN_STEP
        key = _load(given.private_key.get_secret_value())
        claims = {"iss": given.team_id, "iat": moment}
        return Token(es256(key, {"kid": given.key_id}, claims), moment)

    def lane(self, shot: Shot) -> str:
        return self._lanes[shot.content.environment == "SANDBOX"]

    @cached_property
    def _lanes(self) -> tuple[str, str]:
        return f"{self._name}:PRODUCTION", f"{self._name}:SANDBOX"

    def _topic(self, content: Push) -> str:
        return content.app or self.settings.topic

    def request(self, shot: Shot, credential: str) -> Request | Outcome:
        content, given = shot.content, self.settings
        if not _TOKEN.fullmatch(content.token):
            return Gone("BadDeviceToken")
        payload = orjson.dumps(_payload(content))
        host = given.sandbox_url if content.environment == "SANDBOX" else given.production_url
        ttl = DAY if content.ttl is None else content.ttl
        common = _common(
            credential,
            self._topic(content),
            not (content.title or content.body),
            content.priority == "HIGH",
            now() + ttl if ttl else 0,
        )
        headers: tuple[tuple[str, str], ...] = (("apns-id", shot.attempt_id),)
        if content.collapse_key:
            headers += (("apns-collapse-id", _collapse_id(content)),)
        return too_large(payload, PAYLOAD_LIMIT) or Request(
            url=f"{host}/3/device/{content.token}",
            body=payload,
            headers=headers,
            common_headers=common,
            connect_timeout=min(5.0, given.timeout),
            timeout=given.timeout,
            http2=True,
            ca_pem=given.ca_pem,
        )

    def perform(
        self, shots: Sequence[Shot], transport: Transport, credential: str, progress: Progress
    ) -> list[Answer]:
        """Send over the key's own connections: Apple binds each to the key that it saw first."""
        answers = super().perform(shots, transport.isolated(self._name), credential, progress)
        if any(isinstance(one, Retryable) and one.reason in _RECONNECT for one in answers):
            transport.close_isolated(self._name)
        return answers

    def took(self, shots: Sequence[Shot]) -> None:
        """Note which credential and which topics work."""
        alike = {(shot.content.environment, shot.content.app): shot for shot in shots}
        used = [(self.lane(shot), self._topic(shot.content)) for shot in alike.values()]
        access_tokens.prove({name for lane, topic in used for name in (lane, f"{lane}:{topic}")})

    def answer(self, shot: Shot, reply: Reply) -> Answer:
        if reply.status == 200:
            return Accepted(shot.attempt_id)  # the answer's apns-id is the one that we gave
        said = read_object(reply.body)
        reason = str(said.get("reason") or reply.status)[:64]
        verdict = ANSWERS.get((reply.status, reason)) or _OTHERWISE.get(reply.status)
        match verdict:
            case Verdict.DEAD_IF_PROVEN:
                proven = access_tokens.is_proven(self.lane(shot))
                return Gone(reason) if proven else Misconfigured(reason)
            case Verdict.DEAD_IF_TOPIC_PROVEN:
                proven = access_tokens.is_proven(f"{self.lane(shot)}:{self._topic(shot.content)}")
                return Gone(reason) if proven else Misconfigured(reason)
            case Verdict.DEAD_SINCE:
                return _dead_since(shot.content, reason, said.get("timestamp"))
            case Verdict.CONFIG:
                return Misconfigured(reason)
            case Verdict.PAYLOAD:
                return Rejected(reason, Fault.CONTENT)
            case Verdict.RENEW:
                return Again(Misconfigured(reason))
            case Verdict.RETRY:
                return Retryable(reason)
            case Verdict.BACKOFF:
                return Backoff(reason, first=60.0, wish=retry_after(reply))
            case Verdict.DEVICE:
                return Retryable(reason, retry_after(reply) or DEVICE_DELAY, blames_account=False)
            case Verdict.BUSY:
                return Backoff(reason, wish=retry_after(reply), later=LATER)
        return Unknown(f"unexpected answer: {reply.status}")


@lru_cache(maxsize=64)
def _common(
    credential: str, topic: str, silent: bool, urgent: bool, expiration: int
) -> CommonHeaders:
    """Give the headers that most pushes of a second have in common."""
    return CommonHeaders(
        ("authorization", f"bearer {credential}"),
        ("apns-topic", topic),
        ("apns-push-type", "background" if silent else "alert"),
        ("apns-priority", "10" if urgent and not silent else "5"),
        ("apns-expiration", str(expiration)),
    )


def _dead_since(content: Push, reason: str, timestamp: Any) -> Outcome:
    """Believe that a token is dead unless the device registered after that."""
    since = timestamp if isinstance(timestamp, int) and 0 < timestamp < _END else None
    registered = content.registered_at
    if since is not None and registered is not None and int(registered.timestamp() * 1000) > since:
        return Retryable(f"{reason}, before the device registered again", blames_account=False)
    return Gone(reason, since)


def _payload(content: Push) -> dict[str, Any]:
    aps: dict[str, Any] = {"content-available": 1}
    if content.title and content.body:
        aps = {"alert": {"title": content.title, "body": content.body}, "sound": "default"}
    elif content.title:
        aps = {"alert": {"title": content.title}, "sound": "default"}
    elif content.body:
        aps = {"alert": {"body": content.body}, "sound": "default"}
    payload: dict[str, Any] = {"aps": aps}
    if content.badge is not None:
        aps["badge"] = content.badge
    if content.data:
        payload["data"] = dict(content.data)
    if content.image:
        aps["mutable-content"] = 1  # an extension of the app fetches it
        payload["image"] = content.image
    if content.link:
        payload["link"] = content.link
    return payload


def _collapse_id(content: Push) -> str:
    key = content.collapse_key
    fits = key.isascii() and key.isprintable() and len(key) <= COLLAPSE_LIMIT
    return key if fits else sha256(key.encode()).hexdigest()
