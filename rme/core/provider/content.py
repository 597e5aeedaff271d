"""What a provider sends: a rendered email, a rendered SMS, or a push for one device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Email:
    """A rendered email. Every text may hold any character: the provider makes it safe."""

    to: str
    from_address: str
    from_name: str
    subject: str
    text: str
    html: str = ""
    to_name: str = ""
    message_id: str = ""
    """Our Message-ID without angle brackets. A late bounce finds its message by it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, such as List-Unsubscribe. Their names never come from a caller."""


@dataclass(frozen=True, slots=True)
class Sms:
    """A rendered SMS. `to` is E.164; `sender` is a sender id or an empty string."""

    to: str
    text: str
    sender: str = ""


class Push(NamedTuple):
    """A rendered push for one device. `ttl` in seconds, `badge` a count; missing texts are empty.

    A NamedTuple, as a window has thousands of them and it is the cheapest to construct.
    """

    token: str
    platform: str
    title: str
    body: str
    data: Mapping[str, str] = MappingProxyType({})
    badge: int | None = None
    image: str = ""
    link: str = ""
    ttl: int | None = None
    collapse_key: str = ""
    priority: str = "HIGH"
    app: str = ""
    """The app that it is for; on IOS its bundle id."""
    environment: str = "PRODUCTION"
    registered_at: datetime | None = None

    def __repr__(self) -> str:
        """Return the platform alone: the token is a secret, and the text is private."""
        return f"{type(self).__name__}({self.platform})"


Content = Email | Sms | Push
