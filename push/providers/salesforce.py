"""Salesforce's mobile app, by its custom notification action.

https://developer.salesforce.com/docs/atlas.en-us.pushImplGuide.meta/pushImplGuide/actions_obj_custom_notification.htm

A window goes as one request with an action for each dispatch, and each action has its own result.
RESULTS is the table of what a result's `statusCode` means. For the request as a whole:

| status | outcome |
|---|---|
| 200, 201, 400 with a result for each action | see RESULTS |
| 401 | one new log-in, then Misconfigured |
| any, with REQUEST_LIMIT_EXCEEDED | backoff until the next full hour |
| 403, 404 | Misconfigured |
| 400 | Rejected, the content's fault |
| 429, 503 | backoff |
| anything else | Unknown |
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated
from urllib.parse import urlencode

import orjson
from pydantic import Field, SecretStr, StringConstraints

from push.providers import access_tokens, backoff, hourly_limit
from push.providers.access_tokens import AccessToken, Lifetime
from push.providers.base import (
    FORM_HEADERS,
    Answer,
    Backoff,
    CredentialRefused,
    PushProvider,
    log_in,
    log_in_outcome,
    now,
    objects_of,
)
from rme.core import exact_json
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
from rme.core.provider.http import HttpSettings, retry_after
from rme.transport.messages import Failure, Reply
from rme.transport.performer import Performer

ACTION = "actions/standard/customNotificationAction"
ACTIONS_LIMIT = 200
"""Actions that one request takes."""
HOURLY_LIMIT = 9500
"""Salesforce silently loses what exceeds 10,000 in an hour."""
TITLE_LIMIT, BODY_LIMIT = 250, 750
TOKEN_LIFE = Lifetime(renew_after=30 * 60, expires_after=60 * 60)
HOUR = 3600


def _content(code: str) -> Answer:
    return Rejected(code, Fault.CONTENT)


def _until_next_hour(code: str) -> Answer:
    return Backoff(code, retry_after=float(HOUR - now() % HOUR))


RESULTS: dict[str, Callable[[str], Answer]] = {
    "ENTITY_IS_DELETED": Gone,
    "INACTIVE_OWNER_OR_USER": Gone,
    "INVALID_CROSS_REFERENCE_KEY": Rejected,
    "INVALID_ID_FIELD": Rejected,
    "MALFORMED_ID": Rejected,
    "INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY": Rejected,
    "API_DISABLED_FOR_ORG": Misconfigured,
    "FUNCTIONALITY_NOT_ENABLED": Misconfigured,
    # The app's own user lacks the permission Send Custom Notifications, which this action requires;
    # what it lacks for one recipient is INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY.
    "INSUFFICIENT_ACCESS": Misconfigured,
    "INSUFFICIENT_ACCESS_OR_READONLY": Misconfigured,
    "REQUIRED_FIELD_MISSING": _content,
    "STRING_TOO_LONG": _content,
    "SERVER_UNAVAILABLE": Retryable,
    "UNABLE_TO_LOCK_ROW": Retryable,
    "LIMIT_EXCEEDED": _until_next_hour,
    "REQUEST_LIMIT_EXCEEDED": _until_next_hour,
}
"""By code: the outcome, made of the code. Another code refuses this user alone."""


class SalesforcePushSettings(HttpSettings):
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


class SalesforcePush(PushProvider):
    """Push to users of Salesforce's mobile app."""

    kind = "salesforce"
    label = "Salesforce mobile app"
    platforms = frozenset({"PLATFORM"})
    Settings = SalesforcePushSettings
    settings: SalesforcePushSettings

    @cached_property
    def credential_name(self) -> str:
        """Return the credential's name, by which its token is kept."""
        account = self.settings
        secret = account.client_secret.get_secret_value()
        digest = access_tokens.credential_id(account.login_url, account.client_id, secret)
        return f"salesforce:{digest}"

    def credential(self, transport: Performer, refused: str) -> str:
        """Return the org's URL and the access token, with a space between."""
        refused_token = refused.partition(" ")[2]
        token = access_tokens.get(
            self.credential_name, TOKEN_LIFE, lambda: self._log_in(transport), refused=refused_token
        )
        return f"{token.base_url} {token.text}"

    def check(self, transport: Performer) -> Outcome:
        return log_in_outcome(lambda: self._log_in(transport))

    def _log_in(self, transport: Performer) -> AccessToken:
        account = self.settings
        form = {
            "grant_type": "client_credentials",
            "client_id": account.client_id,
            "client_secret": account.client_secret.get_secret_value(),
        }
        url = f"{account.login_url}/services/oauth2/token"
        request = account.request(url, urlencode(form).encode(), FORM_HEADERS)
        text, body = log_in(transport, request)
        instance_url = body.get("instance_url")
        base_url = instance_url if isinstance(instance_url, str) else account.login_url
        return AccessToken(text, now(), base_url)

    def throttle_key(self, dispatch: Dispatch) -> str:
        return self.credential_name

    def perform(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        credential: str,
        progress: Progress,
    ) -> list[Answer]:
        """Send as many actions in a request as one takes."""
        answers: list[Answer] = []
        for start in range(0, len(dispatches), ACTIONS_LIMIT):
            chunk = dispatches[start : start + ACTIONS_LIMIT]
            answers += self._perform_actions(chunk, transport, credential)
        return answers

    def _perform_actions(
        self, dispatches: Sequence[Dispatch], transport: Performer, credential: str
    ) -> list[Answer]:
        count = len(dispatches)
        if seconds := hourly_limit.take(self.credential_name, count, HOURLY_LIMIT):
            return [Retryable("the hourly limit is reached", seconds)] * count
        base_url, _, token = credential.partition(" ")
        actions = [_action(each.push, self.settings.notification_type_id) for each in dispatches]
        request = self.settings.request(
            f"{base_url}/services/data/{self.settings.api_version}/{ACTION}",
            orjson.dumps({"inputs": actions}),
            (("Authorization", f"Bearer {token}"), ("Content-Type", "application/json")),
        )
        (reply,) = transport.perform([request])
        if isinstance(reply, Failure):
            return [self.read_answer(each, reply) for each in dispatches]
        results = _results(reply, count)
        if results is None:
            return [_answer_to_request(reply)] * count
        answers = [
            _answer_to_action(each, result)
            for each, result in zip(dispatches, results, strict=True)
        ]
        if any(isinstance(answer, Accepted) for answer in answers):
            backoff.reset([self.credential_name])
            return [_of_user(answer) for answer in answers]
        return answers


def _action(content: Push, notification_type: str) -> dict[str, object]:
    """Return one action. A tap opens the link, else `data`'s `recordId`, else the user."""
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


def _objects(reply: Reply) -> list[dict[str, object]]:
    try:
        return objects_of(exact_json.loads(reply.body))
    except orjson.JSONDecodeError:
        return []


def _results(reply: Reply, count: int) -> list[dict[str, object]] | None:
    """Return the result of each action; None if the request was answered as a whole."""
    results = [each for each in _objects(reply) if "isSuccess" in each]
    good = reply.status in (200, 201, 400) and len(results) == count
    return results if good else None


def _answer_to_action(dispatch: Dispatch, result: dict[str, object]) -> Answer:
    if result.get("isSuccess") is True:
        return Accepted(dispatch.attempt_id)
    codes = (each.get("statusCode") for each in objects_of(result.get("errors")))
    code = next((code[:64] for code in codes if isinstance(code, str)), "no status code")
    return RESULTS.get(code, Rejected)(code)


def _of_user(answer: Answer) -> Answer:
    """Return the answer for one user, if other users of the same request were sent to."""
    return Rejected(answer.reason) if isinstance(answer, Misconfigured) else answer


def _answer_to_request(reply: Reply) -> Answer:
    code = next((str(each.get("errorCode", ""))[:64] for each in _objects(reply)), "")
    code = code or f"answered {reply.status}"
    if RESULTS.get(code) is _until_next_hour:
        return _until_next_hour(code)
    match reply.status:
        case 401:
            return CredentialRefused(Misconfigured(code))
        case 403 | 404:
            return Misconfigured(code)
        case 400:
            return Rejected(code, Fault.CONTENT)
        case 429 | 503:
            return Backoff(code, first=10.0, retry_after=retry_after(reply))
    return Unknown(f"unexpected answer: {reply.status}")
