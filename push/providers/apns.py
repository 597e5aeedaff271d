"""Apple Push Notification service (APNs) over HTTP/2, with one provider token for a team and key.

https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns
ANSWERS below is the table of what its reasons mean.
"""

import re
from collections.abc import Sequence
from enum import Enum
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Annotated

import orjson
import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.utils.translation import gettext, gettext_noop
from pydantic import Field, SecretStr, StringConstraints, field_validator

from push.providers import access_tokens, proven
from push.providers.access_tokens import AccessToken, Lifetime
from push.providers.base import (
    DAY,
    Answer,
    Backoff,
    CredentialRefused,
    PushProvider,
    check_outcome,
    now,
    too_large,
)
from push.providers.signing import es256
from rme.core import ids
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
from rme.core.provider import Dispatch, Progress, Push
from rme.core.provider.credentials import DESTINATION
from rme.core.provider.http import HttpSettings, Timeout, read_object, retry_after
from rme.transport.messages import CommonHeaders, Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

PAYLOAD_LIMIT = 4096
COLLAPSE_LIMIT = 64
TOKEN_LIFE = Lifetime(renew_after=40 * 60, expires_after=55 * 60, min_age=20 * 60)
"""Apple asks for a new token every 20 to 60 minutes."""
TOKEN_STEP = 20 * 60
LATER = 15 * 60.0
"""The seconds that Apple asks to wait after a 500 or 503."""
NO_DEVICE = "0" * 64
"""A token that is written as Apple's are, and belongs to no device."""
DEVICE_DELAY = 60.0
"""The wait in seconds of a device that was sent too much."""


class ReasonMeaning(Enum):
    """What a reason means."""

    DEAD_IF_PROVEN = "the token is dead if the credential was accepted before in its environment"
    DEAD_IF_TOPIC_PROVEN = "likewise, for credential and topic"
    DEAD_SINCE = "the token is dead since `timestamp`"
    TOPIC = "the topic is wrong: the device's app, or the account's settings"
    ENVIRONMENT = "the key is not for this environment: the device's, or it is wrong"
    CONFIG = "the account's settings are wrong"
    PAYLOAD = "this content will never be taken"
    RETRY = "certainly not taken; it may work over another connection"
    RENEW = "our provider token has expired"
    BACKOFF = "the credential is to be slowed down"
    DEVICE = "this device is sent too much"
    BUSY = "Apple cannot take it now"


M = ReasonMeaning
ANSWERS: dict[tuple[int, str], ReasonMeaning] = {
    (400, "BadDeviceToken"): M.DEAD_IF_PROVEN,
    (400, "DeviceTokenNotForTopic"): M.DEAD_IF_TOPIC_PROVEN,
    (400, "TopicDisallowed"): M.TOPIC,
    (400, "BadTopic"): M.TOPIC,
    (400, "MissingTopic"): M.CONFIG,
    (400, "BadCollapseId"): M.PAYLOAD,
    (400, "BadExpirationDate"): M.PAYLOAD,
    (400, "BadMessageId"): M.PAYLOAD,
    (400, "BadPriority"): M.PAYLOAD,
    (400, "InvalidPushType"): M.PAYLOAD,
    (400, "DuplicateHeaders"): M.PAYLOAD,
    (400, "MissingDeviceToken"): M.PAYLOAD,
    (400, "PayloadEmpty"): M.PAYLOAD,
    (400, "IdleTimeout"): M.RETRY,
    (403, "ExpiredProviderToken"): M.RENEW,
    (403, "InvalidProviderToken"): M.CONFIG,
    (403, "MissingProviderToken"): M.CONFIG,
    (403, "BadCertificate"): M.CONFIG,
    (403, "BadCertificateEnvironment"): M.ENVIRONMENT,
    (403, "BadEnvironmentKeyIdInToken"): M.ENVIRONMENT,
    (403, "Forbidden"): M.CONFIG,
    (403, "UnrelatedKeyIdInToken"): M.RETRY,
    (404, "BadPath"): M.CONFIG,
    (405, "MethodNotAllowed"): M.CONFIG,
    (410, "Unregistered"): M.DEAD_SINCE,
    (410, "ExpiredToken"): M.DEAD_SINCE,
    (413, "PayloadTooLarge"): M.PAYLOAD,
    (429, "TooManyProviderTokenUpdates"): M.BACKOFF,
    (429, "TooManyRequests"): M.DEVICE,
    (500, "InternalServerError"): M.BUSY,
    (503, "ServiceUnavailable"): M.BUSY,
    (503, "Shutdown"): M.RETRY,
}
_RECONNECT = frozenset(reason for (_, reason), meaning in ANSWERS.items() if meaning is M.RETRY)
_BY_STATUS = {
    400: M.PAYLOAD,
    403: M.CONFIG,
    404: M.CONFIG,
    405: M.CONFIG,
    410: M.DEAD_SINCE,
    413: M.PAYLOAD,
    429: M.BACKOFF,
    500: M.BUSY,
    503: M.BUSY,
}
"""What a status means with a reason that the table lacks."""

_LATEST_MS = 253_402_300_800_000
"""The year 10,000, which no datetime can represent."""
_TOKEN = re.compile(r"[0-9a-f]{64,4096}")
_Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{10}$")]


class ApnsSettings(HttpSettings):
    """The key of an Apple developer team."""

    team_id: _Identifier = Field(description="Ten letters and digits.")
    key_id: _Identifier = Field(description="Ten letters and digits.")
    private_key: SecretStr = Field(description="The .p8 file.")
    topic: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", min_length=1, max_length=200)
    ] = Field(description="The app's bundle id, for devices that name no app.")
    production_url: Annotated[str, DESTINATION] = "https://api.push.apple.com"
    sandbox_url: Annotated[str, DESTINATION] = "https://api.sandbox.push.apple.com"
    timeout: Timeout = 10.0

    @field_validator("private_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr) -> SecretStr:
        _load(value.get_secret_value())
        return value


@lru_cache(maxsize=64)
def _load(pem: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of a .p8 file. Raises ValueError without any of its content."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise ValueError(gettext("must be a private key on P-256 in PEM"))
    return key


class Apns(PushProvider):
    """Push to iOS apps."""

    kind = "apns"
    label = "Apple Push Notification service"
    platforms = frozenset({"IOS"})
    refusal_problem = (
        "APNS_KEY_REFUSED",
        gettext_noop("Apple refuses %(name)s: its key, team or topic is wrong."),
    )
    Settings = ApnsSettings
    settings: ApnsSettings

    @cached_property
    def credential_name(self) -> str:
        """Return the credential's name, by which its token and connections are kept."""
        account = self.settings
        key = account.private_key.get_secret_value()
        return f"apns:{access_tokens.credential_id(account.team_id, account.key_id, key)}"

    def credential(self, transport: Performer, refused: str) -> str:
        """Return the provider token: signed here, shared by all processes."""
        return access_tokens.get(self.credential_name, TOKEN_LIFE, self.sign, refused=refused).text

    def sign(self) -> AccessToken:
        """Return the token of these twenty minutes.

        It is the same in every process, so Apple sees no more tokens while Redis is away.
        """
        account = self.settings
        moment = now() // TOKEN_STEP * TOKEN_STEP
        key = _load(account.private_key.get_secret_value())
        token = es256(key, account.key_id, {"iss": account.team_id, "iat": moment})
        return AccessToken(token, moment)

    def check(self, transport: Performer) -> Outcome:
        """Push to a token that no device has: Apple refuses key and topic before it.

        APNs has no dry run. The connections are the key's own, as for pushes.
        """
        probe = Dispatch(ids.new_text_id(), Push(NO_DEVICE, "IOS", "Check", ""))
        request = self.write(probe, self.sign().text)
        assert isinstance(request, Request)
        (reply,) = transport.isolated(self.credential_name).perform([request])
        if isinstance(reply, Reply) and _reason(reply) == "BadDeviceToken":
            return Accepted()
        return check_outcome(self.read_answer(probe, reply))

    def throttle_key(self, dispatch: Dispatch) -> str:
        sandbox = dispatch.push.environment == "SANDBOX"
        return self._sandbox_key if sandbox else self._production_key

    @cached_property
    def _production_key(self) -> str:
        return f"{self.credential_name}:PRODUCTION"

    @cached_property
    def _sandbox_key(self) -> str:
        return f"{self.credential_name}:SANDBOX"

    def _topic(self, content: Push) -> str:
        return content.app or self.settings.topic

    def write(self, dispatch: Dispatch, credential: str) -> Request | Outcome:
        content, account = dispatch.push, self.settings
        if not _TOKEN.fullmatch(content.token):
            return Gone("BadDeviceToken")
        payload = orjson.dumps(_payload(content))
        host = account.sandbox_url if content.environment == "SANDBOX" else account.production_url
        ttl = DAY if content.ttl is None else content.ttl
        common = _common(
            credential,
            self._topic(content),
            not (content.title or content.body),
            content.priority == "HIGH",
            now() + ttl if ttl else 0,
        )
        headers: tuple[tuple[str, str], ...] = (("apns-id", dispatch.attempt_id),)
        if content.collapse_key:
            headers += (("apns-collapse-id", _collapse_id(content)),)
        url = f"{host}/3/device/{content.token}"
        return too_large(payload, PAYLOAD_LIMIT) or account.request(
            url, payload, headers, http2=True, common_headers=common
        )

    def perform(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        credential: str,
        progress: Progress,
    ) -> list[Answer]:
        """Send over the key's own connections: Apple binds each to the first key that it sees."""
        isolated = transport.isolated(self.credential_name)
        answers = super().perform(dispatches, isolated, credential, progress)
        if any(isinstance(each, Retryable) and each.reason in _RECONNECT for each in answers):
            transport.close_isolated(self.credential_name)
        return answers

    def on_accepted(self, dispatches: Sequence[Dispatch]) -> None:
        """Store which credential and which topics were accepted."""
        alike = {(each.push.environment, each.push.app): each for each in dispatches}
        names = [(self.throttle_key(each), self._topic(each.push)) for each in alike.values()]
        proven.prove({name for key, topic in names for name in (key, f"{key}:{topic}")})

    def read_reply(self, dispatch: Dispatch, reply: Reply) -> Answer:
        if reply.status == 200:
            return Accepted(dispatch.attempt_id)  # Apple repeats our apns-id
        return self._refusal(dispatch, reply)

    def _refusal(self, dispatch: Dispatch, reply: Reply) -> Answer:
        reason = _reason(reply)
        meaning = ANSWERS.get((reply.status, reason)) or _BY_STATUS.get(reply.status)
        match meaning:
            case ReasonMeaning.DEAD_IF_PROVEN:
                is_proven = proven.is_proven(self.throttle_key(dispatch))
                return Gone(reason) if is_proven else self._wrong_environment(dispatch, reason)
            case ReasonMeaning.DEAD_IF_TOPIC_PROVEN:
                topic = f"{self.throttle_key(dispatch)}:{self._topic(dispatch.push)}"
                is_proven = proven.is_proven(topic)
                return Gone(reason) if is_proven else self._wrong_topic(dispatch, reason)
            case ReasonMeaning.TOPIC:
                return self._wrong_topic(dispatch, reason)
            case ReasonMeaning.ENVIRONMENT:
                return self._wrong_environment(dispatch, reason)
            case ReasonMeaning.DEAD_SINCE:
                return _dead_since(dispatch.push, reason, read_object(reply.body).get("timestamp"))
            case ReasonMeaning.CONFIG:
                return Misconfigured(reason)
            case ReasonMeaning.PAYLOAD:
                return Rejected(reason, Fault.CONTENT)
            case ReasonMeaning.RENEW:
                return CredentialRefused(Misconfigured(reason))
            case ReasonMeaning.RETRY:
                return Retryable(reason)
            case ReasonMeaning.BACKOFF:
                return Backoff(reason, first=60.0, retry_after=retry_after(reply))
            case ReasonMeaning.DEVICE:
                return Retryable(reason, retry_after(reply) or DEVICE_DELAY, blames_account=False)
            case ReasonMeaning.BUSY:
                return Backoff(reason, retry_after=retry_after(reply), at_least=LATER)
        return Unknown(f"unexpected answer: {reply.status}")

    def _wrong_environment(self, dispatch: Dispatch, reason: str) -> Outcome:
        """Return Misconfigured, unless Apple accepts the key in the other environment alone.

        Then the device's environment is wrong. The device stays, since many may be registered so.
        """
        device_key = self.throttle_key(dispatch)
        (other_key,) = {self._production_key, self._sandbox_key} - {device_key}
        if proven.is_proven(other_key) and not proven.is_proven(device_key):
            return _refused(dispatch, reason)
        return Misconfigured(reason)

    def _wrong_topic(self, dispatch: Dispatch, reason: str) -> Outcome:
        """Return Misconfigured for the account's topic; an app that a device names fails alone."""
        if self._topic(dispatch.push) == self.settings.topic:
            return Misconfigured(reason)
        return _refused(dispatch, reason)


def _refused(dispatch: Dispatch, reason: str) -> Outcome:
    """Return the refusal of what one device names. Another account may have its app's key."""
    push = dispatch.push
    log.warning("push.refused", reason=reason, app=push.app, environment=push.environment)
    return Rejected(reason, Fault.ROUTE)


@lru_cache(maxsize=64)
def _common(
    credential: str, topic: str, silent: bool, urgent: bool, expiration: int
) -> CommonHeaders:
    """Return the headers that most pushes of a second share."""
    return CommonHeaders(
        ("authorization", f"bearer {credential}"),
        ("apns-topic", topic),
        ("apns-push-type", "background" if silent else "alert"),
        ("apns-priority", "10" if urgent and not silent else "5"),
        ("apns-expiration", str(expiration)),
    )


def _reason(reply: Reply) -> str:
    return str(read_object(reply.body).get("reason") or reply.status)[:64]


def _dead_since(content: Push, reason: str, timestamp: object) -> Outcome:
    """Return Gone, unless the device registered after the time of death."""
    since = timestamp if isinstance(timestamp, int) and 0 < timestamp < _LATEST_MS else None
    registered = content.registered_at
    if since is not None and registered is not None and int(registered.timestamp() * 1000) > since:
        return Retryable(f"{reason}, before the device registered again", blames_account=False)
    return Gone(reason, since)


def _payload(content: Push) -> dict[str, object]:
    aps: dict[str, object] = {"content-available": 1}
    if content.title and content.body:
        aps = {"alert": {"title": content.title, "body": content.body}, "sound": "default"}
    elif content.title:
        aps = {"alert": {"title": content.title}, "sound": "default"}
    elif content.body:
        aps = {"alert": {"body": content.body}, "sound": "default"}
    payload: dict[str, object] = {"aps": aps}
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
