"""What a message says beside its template, as its content keeps it."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypedDict

TRACEPARENT: Final = "traceparent"
"""The key of a content with the context of its message's trace, if that is traced."""


class LiteralContent(TypedDict, total=False):
    """Texts that stand in the request itself; which of them a channel needs, `accept` checks."""

    subject: str
    text: str
    html: str
    title: str
    body: str
    data: dict[str, Any]
    badge: int


class PushOverrides(TypedDict, total=False):
    """What a request sets for pushes beyond their template."""

    data: dict[str, Any]
    badge: int
    image: str
    link: str
    ttl: int
    collapse_key: str
    priority: Literal["HIGH", "NORMAL"]


class Sender(TypedDict, total=False):
    """The sender of an email; empty once a content is erased."""

    domain: str | None
    local_part: str | None
    name: str


class ContentBody(TypedDict, total=False):
    """The body of a `MessageContent`: what rendering needs beside the template.

    A key without a value is absent, and an erased body is empty. It is stored as JSON, and read
    without being checked, once for each message that is sent.
    """

    content: LiteralContent
    """Absent where there is a template."""
    push: PushOverrides
    sender: Sender
    sms_sender: str
    """The sender that the caller wants an SMS to show; empty: the account's own.

    Absent if no SMS may be sent. Contents of earlier releases lack it: there the name in `sender`
    was the caller's or the domain's.
    """
    record: Mapping[str, Any]
    """The record of the context, as it was when the message was accepted."""
    variables: Mapping[str, Any]
    """Those of the context, for all recipients."""
    recipients: Mapping[str, Mapping[str, Any]]
    """Those of single recipients, by delivery id."""
    traceparent: str
