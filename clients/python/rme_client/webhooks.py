"""Verification of webhooks, by the Standard Webhooks library."""

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from rme_client.errors import RmeError


class InvalidSignature(RmeError):
    """The request is not the service's, or was changed, or is more than five minutes old."""


class WebhookEvent(TypedDict):
    """An event. `data` depends on the type: see the service's guide to webhooks."""

    type: str
    timestamp: str
    data: dict[str, Any]


def verify(secret: str, headers: Mapping[str, str], body: bytes | str) -> WebhookEvent:
    """Return the event of a request. Raise InvalidSignature.

    `body` is as it was received, before parsing; names of headers may be in any case.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        return cast(WebhookEvent, Webhook(secret).verify(body, lowered))
    except (WebhookVerificationError, ValueError) as error:
        raise InvalidSignature(str(error)) from error
