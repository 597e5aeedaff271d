"""The rendered content of each channel."""

from collections.abc import Mapping
from dataclasses import dataclass

from messaging.content.rendering.segments import SmsSize


@dataclass(frozen=True, slots=True)
class RenderedEmail:
    """An email. `missing` names the variables without a value."""

    subject: str
    text: str
    html: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedSms:
    text: str
    size: SmsSize
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedPush:
    title: str
    body: str
    data: Mapping[str, str]
    badge: int | None
    image: str
    link: str
    missing: tuple[str, ...] = ()


Content = RenderedEmail | RenderedSms | RenderedPush
