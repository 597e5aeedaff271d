"""Firebase Cloud Messaging (FCM), HTTP v1: to Android apps, by a Google service account.

https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode

| status | error code | outcome |
|---|---|---|
| 200 | | Accepted |
| 400 | INVALID_ARGUMENT that names the token | Gone |
| 400, 413 | anything else | Rejected, the content's fault |
| 401 | THIRD_PARTY_AUTH_ERROR | Rejected: an iOS or web token, whose key Google lacks |
| 401, 403 | anything else | one new access token, then Misconfigured |
| 403 | SENDER_ID_MISMATCH | Gone (the token is another sender's), with a warning |
| 404 | UNREGISTERED | Gone |
| 404 | anything else | Misconfigured: no such project |
| 429 | QUOTA_EXCEEDED | backoff: Retry-After, else 60 s |
| 500, 503 | INTERNAL, UNAVAILABLE | backoff: Retry-After, else 10 s, doubling |
| anything else | | Unknown |

pyfcm is not used; the reasons and figures are in the README, under Choices.
"""

import re
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import jwt
import orjson
import structlog
from django.utils.translation import gettext as _
from pydantic import Field, SecretStr, field_validator

from push.providers import access_tokens
from push.providers.access_tokens import AccessToken, Lifetime
from push.providers.base import (
    FORM_HEADERS,
    Answer,
    Backoff,
    CredentialRefused,
    NoCredential,
    PushProvider,
    accepted,
    check_outcome,
    log_in,
    now,
    objects_of,
    too_large,
)
from rme.core import ids, push_data
from rme.core.outcomes import Fault, Gone, Misconfigured, Outcome, Rejected, Unknown
from rme.core.provider import Dispatch, Push
from rme.core.provider.credentials import DESTINATION
from rme.core.provider.http import HttpSettings, Timeout, read_object, retry_after
from rme.transport.messages import Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

PAYLOAD_LIMIT = 4096
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
HOUR = 3600
TOKEN_LIFE = Lifetime(renew_after=50 * 60, expires_after=58 * 60)
"""Google's tokens are valid for an hour."""
_INSTALLATION = re.compile(r"[cdef][A-Za-z0-9_-]{21}")
"""A Firebase installation id, sent in its own field; registration tokens are longer."""


class ServiceAccount(NamedTuple):
    """The key file of a service account, as far as it is used."""

    project_id: str
    client_email: str
    private_key: str
    private_key_id: str
    token_uri: str

    def __repr__(self) -> str:
        """Return the project alone: the rest is secret."""
        return f"{type(self).__name__}({self.project_id})"


@lru_cache(maxsize=64)
def _service_account(text: str) -> ServiceAccount:
    """Return a service account's key file. Raises ValueError without any of its content."""
    fields = read_object(text.encode())
    values = [value for name in ServiceAccount._fields if (value := fields.get(name))]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(ServiceAccount._fields):
        names = ", ".join(ServiceAccount._fields)
        raise ValueError(_("must be a service account's JSON with %(names)s") % {"names": names})
    account = ServiceAccount(*texts)
    if not re.fullmatch(r"[a-z0-9:.-]{1,100}", account.project_id):
        raise ValueError(_("its project_id is not valid"))
    try:
        jwt.encode({}, account.private_key, algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError):
        raise ValueError(_("its private_key is not an RSA key in PEM")) from None
    return account


class FcmSettings(HttpSettings):
    """The service account of a Firebase project."""

    service_account_json: SecretStr = Field(description="The key file of a service account.")
    base_url: Annotated[str, DESTINATION] = "https://fcm.googleapis.com"
    timeout: Timeout = 10.0

    @field_validator("service_account_json")
    @classmethod
    def _is_an_account(cls, value: SecretStr) -> SecretStr:
        _service_account(value.get_secret_value())
        return value


class Fcm(PushProvider):
    """Push to Android apps."""

    kind = "fcm"
    label = "Firebase Cloud Messaging"
    platforms = frozenset({"ANDROID"})
    Settings = FcmSettings
    settings: FcmSettings

    @cached_property
    def service_account(self) -> ServiceAccount:
        """Return the account's key file."""
        return _service_account(self.settings.service_account_json.get_secret_value())

    @cached_property
    def credential_name(self) -> str:
        """Return the credential's name, by which its token is kept."""
        return f"fcm:{access_tokens.credential_id(*self.service_account)}"

    def credential(self, transport: Performer, refused: str) -> str:
        """Return the access token: requested once an hour, shared by all processes."""
        return access_tokens.get(
            self.credential_name, TOKEN_LIFE, lambda: self._log_in(transport), refused=refused
        ).text

    def check(self, transport: Performer) -> Outcome:
        """Log in, and have a message to a topic validated, and not delivered (`validate_only`)."""
        try:
            token = self._log_in(transport)
        except NoCredential as error:
            return error.outcome
        message = {"topic": "check", "notification": {"title": "Check"}}
        body = orjson.dumps({"validate_only": True, "message": message})
        (reply,) = transport.perform([self._request(body, token.text)])
        probe = Dispatch(ids.new_text_id(), Push("", "ANDROID", "Check", ""))
        return check_outcome(self.read_answer(probe, reply))

    def _log_in(self, transport: Performer) -> AccessToken:
        account, settings, moment = self.service_account, self.settings, now()
        claims = {
            "iss": account.client_email,
            "scope": SCOPE,
            "aud": account.token_uri,
            "iat": moment,
            "exp": moment + HOUR,
        }
        headers = {"kid": account.private_key_id}
        assertion = jwt.encode(claims, account.private_key, "RS256", headers)
        form = urlencode({"grant_type": GRANT, "assertion": assertion}).encode()
        request = settings.request(account.token_uri, form, FORM_HEADERS, http2=True)
        text, body = log_in(transport, request)
        life = body.get("expires_in")
        life = life if isinstance(life, int) and 0 < life < HOUR else HOUR
        return AccessToken(text, moment - (HOUR - life))

    def throttle_key(self, dispatch: Dispatch) -> str:
        return self.credential_name

    def write(self, dispatch: Dispatch, credential: str) -> Request | Outcome:
        message = _message(dispatch.push)
        # What Google counts: all that the app is given.
        measured = orjson.dumps({name: message.get(name) for name in ("notification", "data")})
        body = orjson.dumps({"message": message})
        return too_large(measured, PAYLOAD_LIMIT) or self._request(body, credential)

    def _request(self, body: bytes, credential: str) -> Request:
        project = self.service_account.project_id
        url = f"{self.settings.base_url}/v1/projects/{project}/messages:send"
        headers = (("Authorization", f"Bearer {credential}"), ("Content-Type", "application/json"))
        return self.settings.request(url, body, headers, http2=True)

    def is_accepted(self, reply: Reply) -> bool:
        return reply.status == 200

    def read_reply(self, dispatch: Dispatch, reply: Reply) -> Answer:
        error = read_object(reply.body).get("error")
        error = error if isinstance(error, dict) else {}
        code = _code(error)
        match reply.status, code:
            case 200, _:
                return accepted(read_object(reply.body).get("name"))
            case 400, _ if _names_token(error):
                return Gone(code)
            case 400 | 413, _:
                return Rejected(code, Fault.CONTENT)
            case 401, "THIRD_PARTY_AUTH_ERROR":
                log.warning("push.third_party_key_missing", attempt=dispatch.attempt_id)
                return Rejected(code, Fault.ROUTE)
            case 403, "SENDER_ID_MISMATCH":
                log.warning("push.sender_mismatch", attempt=dispatch.attempt_id)
                return Gone(code)
            case 401 | 403, _:
                return CredentialRefused(Misconfigured(code))
            case 404, "UNREGISTERED":
                return Gone(code)
            case 404, _:
                return Misconfigured(code)
            case 429, _:
                return Backoff(code, first=60.0, retry_after=retry_after(reply))
            case 500 | 503, _:
                return Backoff(code, first=10.0, retry_after=retry_after(reply))
        return Unknown(f"unexpected answer: {reply.status}")


def _message(content: Push) -> dict[str, object]:
    address_name = "fid" if _INSTALLATION.fullmatch(content.token) else "token"
    texts = {"title": content.title, "body": content.body, "image": content.image}
    # A version from an earlier release may have keys that are refused now.
    data = {name: text for name, text in content.data.items() if not push_data.is_reserved(name)}
    if content.link:
        data["link"] = content.link
    android: dict[str, object] = {"priority": "HIGH" if content.priority == "HIGH" else "NORMAL"}
    notification: dict[str, object] = {}
    if content.collapse_key:
        android["collapse_key"] = notification["tag"] = content.collapse_key
    if content.badge is not None:
        notification["notification_count"] = content.badge
    if content.ttl is not None:
        android["ttl"] = f"{content.ttl}s"
    if notification:
        android["notification"] = notification
    return {
        address_name: content.token,
        "notification": {name: text for name, text in texts.items() if text},
        "data": {name: str(value) for name, value in data.items()},
        "android": android,
    }


def _details(error: dict[str, object]) -> list[dict[str, object]]:
    return objects_of(error.get("details"))


def _code(error: dict[str, object]) -> str:
    """Return FCM's own error code, else Google's status."""
    codes = [each["errorCode"] for each in _details(error) if each.get("errorCode")]
    return str(next(iter(codes), error.get("status") or "no error code"))[:64]


def _names_token(error: dict[str, object]) -> bool:
    """Return whether a refusal is about the token, and not about the content."""
    violations = [
        violation
        for each in _details(error)
        for violation in objects_of(each.get("fieldViolations"))
    ]
    return any(each.get("field") in ("message.token", "message.fid") for each in violations)
