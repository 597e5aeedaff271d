"""Dispatches and providers for tests of push."""

from typing import Any
from uuid import UUID

from messaging.providers import REGISTRY
from push.providers.base import PushProvider
from rme.core.outcomes import Outcome
from rme.core.provider import Dispatch, Push
from rme.transport import Transport

TOKENS = {"IOS": "ab" * 32, "ANDROID": "fcm:token", "PLATFORM": "0055g00000AbCdE", "WEB": ""}

EVERYTHING = {
    "data": {"order": "7"},
    "badge": 3,
    "image": "https://x.test/a.png",
    "link": "https://x.test/",
    "ttl": 60,
    "collapse_key": "order-7",
}
"""Every optional field of a push."""


def dispatch(number: int = 1, *, platform: str = "IOS", token: str = "", **fields: Any) -> Dispatch:
    """Return a dispatch. Its attempt's id is the number."""
    content = Push(
        **{
            "token": token or TOKENS[platform],
            "platform": platform,
            "title": "Hello",
            "body": "Hi",
            **fields,
        }
    )
    return Dispatch(str(UUID(int=number)), content)


def provider(kind: str, settings: dict[str, Any]) -> PushProvider:
    """Return a push provider with checked settings."""
    kind_class = REGISTRY[kind]
    created = kind_class(kind_class.Settings.model_validate(settings))
    assert isinstance(created, PushProvider)
    return created


def outcome(account: PushProvider, transport: Transport, one: Dispatch) -> Outcome:
    """Send one dispatch and return its outcome."""
    (found,) = account.send([one], transport)
    return found
