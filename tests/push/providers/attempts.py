"""Shots and senders for tests."""

from typing import Any
from uuid import UUID

from push.providers import REGISTRY
from push.providers.base import Sender, Shot
from rme.core.outcomes import Outcome
from rme.core.provider import Dispatch, Push
from rme.transport import Transport

GOOD = {"IOS": "ab" * 32, "ANDROID": "fcm:token", "PLATFORM": "0055g00000AbCdE", "WEB": ""}


def shot(number: int = 1, *, platform: str = "IOS", token: str = "", **fields: Any) -> Shot:
    """Make a shot. Its attempt's id comes of the number."""
    content = Push(
        **{
            "token": token or GOOD[platform],
            "platform": platform,
            "title": "Hello",
            "body": "Hi",
            **fields,
        }
    )
    return Dispatch(str(UUID(int=number)), content)


def sender(kind: str, settings: dict[str, Any]) -> Sender:
    made = REGISTRY[kind]
    return made(made.Settings.model_validate(settings))


def outcome(made: Sender, transport: Transport, one: Shot) -> Outcome:
    (found,) = made.send([one], transport)
    return found
