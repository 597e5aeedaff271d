"""What is pushed: a notification for one device, and the attempt to send it."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, Protocol


class Notification(NamedTuple):
    """A push for one device. `ttl` in seconds, `badge` a count; missing texts are empty."""

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
    """The app it is for; on IOS its bundle id."""
    environment: str = "PRODUCTION"
    registered_at: datetime | None = None

    def __repr__(self) -> str:
        """Leave out the token, which is a secret of its owner, and what is written to them."""
        return f"{type(self).__name__}({self.platform})"


class Shot(Protocol):
    """One attempt: its id, and what goes to which device."""

    @property
    def attempt_id(self) -> str: ...

    @property
    def content(self) -> Notification: ...
