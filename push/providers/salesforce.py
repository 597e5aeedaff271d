"""The platform's own mobile app: Salesforce's custom notification action.

https://developer.salesforce.com/docs/atlas.en-us.pushImplGuide.meta/pushImplGuide/actions_obj_custom_notification.htm

A window goes as one request with an action for each shot; each has a result of its own. RESULTS is
the table of what a result's `statusCode` means. Of the request as a whole:

| answer | means |
|---|---|
| 200, 201, 400 with a result for each | see RESULTS |
| 401 | one new log-in, then a person must act |
| REQUEST_LIMIT_EXCEEDED | the next hour |
| 403, 404 | a person must act |
| 400 | this content never |
| 429, 503 | patience |
| anything else | unknown |
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

import orjson
from pydantic import Field, SecretStr, StringConstraints

from push.providers import access_tokens, backoff, hourly_limit
from push.providers.access_tokens import Life, Token
from push.providers.base import (
    Again,
    Answer,
    Backoff,
    Progress,
    Sender,
    SenderSettings,
    Shot,
    login_refused,
    no_login,
    now,
    read_object,
    retry_after,
)
from rme.core.credentials import DESTINATION, CaPem
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Push
from rme.transport import Failure, Reply, Request, Transport

ACTION = "actions/standard/customNotificationAction"
ACTIONS_LIMIT = 200
"""How many one request takes."""
HOURLY_LIMIT = 9500
"""Salesforce loses silently what is above 10,000 an hour."""
TITLE_LIMIT, BODY_LIMIT = 250, 750
TOKEN_LIFE = Life(renew=30 * 60, end=60 * 60)
HOUR = 3600


class Verdict(Enum):
    """What a result's code means."""

    DEAD = "no such user any more"
    RECIPIENT = "this user cannot be notified"
    CONFIG = "a person must act"
    PAYLOAD = "this content never"
    LATER = "not taken, another try may work"
    NEXT_HOUR = "the limit is reached"


V = Verdict
RESULTS: dict[str, Verdict] = {
    "ENTITY_IS_DELETED": V.DEAD,
    "INACTIVE_OWNER_OR_USER": V.DEAD,
    "INVALID_CROSS_REFERENCE_KEY": V.RECIPIENT,
    "INVALID_ID_FIELD": V.RECIPIENT,
    "MALFORMED_ID": V.RECIPIENT,
    "INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY": V.RECIPIENT,
    "API_DISABLED_FOR_ORG": V.CONFIG,
    "FUNCTIONALITY_NOT_ENABLED": V.CONFIG,
    "INSUFFICIENT_ACCESS": V.CONFIG,
    "INSUFFICIENT_ACCESS_OR_READONLY": V.CONFIG,
    "REQUIRED_FIELD_MISSING": V.PAYLOAD,
    "STRING_TOO_LONG": V.PAYLOAD,
    "SERVER_UNAVAILABLE": V.LATER,
    "UNABLE_TO_LOCK_ROW": V.LATER,
    "LIMIT_EXCEEDED": V.NEXT_HOUR,
    "REQUEST_LIMIT_EXCEEDED": V.NEXT_HOUR,
}


class PlatformSettings(SenderSettings):
    """A connected app of a Salesforce org, which logs in by client credentials."""

    login_url: Annotated[
        str, StringConstraints(pattern=r"^https://[^\s/]+$", max_length=300), DESTINATION
    ] = Field(description="The org's address: https://example.my.salesforce.com")
    client_id: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    client_secret: SecretStr
    notification_type_id: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9]{15}([A-Za-z0-9]{3})?$")
    ] = Field(description="The id of the custom notification type.")
    api_version: Annotated[str, StringConstraints(pattern=r"^v[0-9]{2,3}\.0$")] = "v62.0"
    ca_pem: CaPem = ""
    timeout: Annotated[float, Field(gt=0, le=25)] = 20.0


class Platform(Sender):
    """Push to users of the platform's own app."""

    kind: ClassVar[str] = "salesforce"
    label: ClassVar[str] = "Salesforce mobile app"
    platforms: ClassVar[frozenset[str]] = frozenset({"PLATFORM"})
    Settings: ClassVar[type[SenderSettings]] = PlatformSettings
    settings: PlatformSettings

    @cached_property
    def name(self) -> str:
        """Name the credential."""
        given = self.settings
        secret = given.client_secret.get_secret_value()
        return f"salesforce:{access_tokens.name_of(given.login_url, given.client_id, secret)}"

    def credential(self, transport: Transport, refused: str) -> str:
        """Give where to call and the access token, with a space between."""
        own_text = refused.partition(" ")[2]
        token = access_tokens.get(
            self.name, TOKEN_LIFE, lambda: self._log_in(transport), refused=own_text
        )
        return f"{token.place} {token.text}"

    def _log_in(self, transport: Transport) -> Token:
        given = self.settings
        form = {
            "grant_type": "client_credentials",
            "client_id": given.client_id,
            "client_secret": given.client_secret.get_secret_value(),
        }
        (reply,) = transport.perform(
            [
                self._post(
                    f"{given.login_url}/services/oauth2/token",
                    urlencode(form).encode(),
                    ("Content-Type", "application/x-www-form-urlencoded"),
                )
            ]
        )
        if isinstance(reply, Failure):
            raise no_login(reply)
        said = read_object(reply.body)
        text, place = said.get("access_token"), said.get("instance_url")
        if reply.status != 200 or not isinstance(text, str) or not text:
            raise login_refused(reply)
        return Token(text, now(), place if isinstance(place, str) else given.login_url)

    def _post(self, url: str, body: bytes, *headers: tuple[str, str]) -> Request:
        given = self.settings
        return Request(
            url=url,
            body=body,
            headers=headers,
            connect_timeout=min(5.0, given.timeout),
            timeout=given.timeout,
            ca_pem=given.ca_pem,
        )

    def lane(self, shot: Shot) -> str:
        return self.name

    def perform(
        self, shots: Sequence[Shot], transport: Transport, credential: str, progress: Progress
    ) -> list[Answer]:
        """Send as many actions a request as one takes."""
        answers: list[Answer] = []
        for start in range(0, len(shots), ACTIONS_LIMIT):
            answers += self._act(shots[start : start + ACTIONS_LIMIT], transport, credential)
        return answers

    def _act(self, shots: Sequence[Shot], transport: Transport, credential: str) -> list[Answer]:
        if seconds := hourly_limit.wait(self.name, len(shots), HOURLY_LIMIT):
            return [Retryable("the hourly limit is reached", seconds)] * len(shots)
        place, _, token = credential.partition(" ")
        actions = [_action(shot.content, self.settings.notification_type_id) for shot in shots]
        request = self._post(
            f"{place}/services/data/{self.settings.api_version}/{ACTION}",
            orjson.dumps({"inputs": actions}),
            ("Authorization", f"Bearer {token}"),
            ("Content-Type", "application/json"),
        )
        (reply,) = transport.perform([request])
        if isinstance(reply, Failure):
            return [self._hear(shot, reply) for shot in shots]
        results = _results(reply, len(shots))
        if results is None:
            return [_whole(reply)] * len(shots)
        if any(result.get("isSuccess") is True for result in results):
            backoff.release([self.name])
        return [_one(shot, result) for shot, result in zip(shots, results, strict=True)]


def _action(content: Push, notification_type: str) -> dict[str, Any]:
    """Write one action. A link, else the record in `data`, else the user is what a tap opens."""
    if content.link:
        page = {"type": "standard__webPage", "attributes": {"url": content.link}}
        target = {"targetPageRef": orjson.dumps(page).decode()}
    else:
        target = {"targetId": content.data.get("recordId") or content.token}
    return {
        "customNotifTypeId": notification_type,
        "recipientIds": [content.token],
        "title": _cut(content.title or content.body, TITLE_LIMIT),
        "body": _cut(content.body or content.title, BODY_LIMIT),
        **target,
    }


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _objects(reply: Reply) -> list[dict[str, Any]]:
    try:
        value = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return []
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _results(reply: Reply, count: int) -> list[dict[str, Any]] | None:
    """Give the result of each action; None if the request was answered as a whole."""
    results = [each for each in _objects(reply) if "isSuccess" in each]
    good = reply.status in (200, 201, 400) and len(results) == count
    return results if good else None


def _codes(result: dict[str, Any]) -> Iterator[str]:
    given = result.get("errors")
    for error in given if isinstance(given, list) else []:
        if isinstance(error, dict) and isinstance(error.get("statusCode"), str):
            yield error["statusCode"][:64]


def _one(shot: Shot, result: dict[str, Any]) -> Answer:
    if result.get("isSuccess") is True:
        return Accepted(shot.attempt_id)
    code = next(_codes(result), "no status code")
    match RESULTS.get(code):
        case Verdict.DEAD:
            return Gone(code)
        case Verdict.CONFIG:
            return Misconfigured(code)
        case Verdict.PAYLOAD:
            return Rejected(code, Fault.CONTENT)
        case Verdict.LATER:
            return Retryable(code)
        case Verdict.NEXT_HOUR:
            return Backoff(code, wish=_to_the_hour())
    return Rejected(code)


def _whole(reply: Reply) -> Answer:
    code = next((str(each.get("errorCode", ""))[:64] for each in _objects(reply)), "")
    code = code or f"answered {reply.status}"
    if RESULTS.get(code) is Verdict.NEXT_HOUR:
        return Backoff(code, wish=_to_the_hour())
    match reply.status:
        case 401:
            return Again(Misconfigured(code))
        case 403 | 404:
            return Misconfigured(code)
        case 400:
            return Rejected(code, Fault.CONTENT)
        case 429 | 503:
            return Backoff(code, first=10.0, wish=retry_after(reply))
    return Unknown(f"unexpected answer: {reply.status}")


def _to_the_hour() -> float:
    """Give the seconds to the next full hour."""
    return float(HOUR - now() % HOUR)
