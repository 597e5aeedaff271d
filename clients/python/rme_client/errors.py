"""Errors of the client.

RmeError
├── ApiError          the service answered with an error
│   └── RateLimited   … because of too many calls; `retry_after` says when to come again
└── ConnectionFailed  there was no answer, after all retries
"""

from collections.abc import Mapping
from typing import Any


class RmeError(Exception):
    """Base of all errors of this package."""


class ConnectionFailed(RmeError):
    """No answer arrived. Its cause is httpx's error."""


class ApiError(RmeError):
    """An error that the service answered with.

    `code` is stable (`INVALID_PAYLOAD`); `details` names the fields that are wrong.
    """

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: float | None) -> None:
        self.status = status
        self.code = str(error.get("code", "UNKNOWN"))
        self.message = str(error.get("message", ""))
        self.details: list[dict[str, str]] = list(error.get("details", ()))
        self.request_id: str | None = error.get("requestId")
        self.message_id: str | None = error.get("messageId")
        self.retry_after = retry_after
        super().__init__(f"{status} {self.code}: {self.message}")


class RateLimited(ApiError):
    """Too many calls (429)."""
