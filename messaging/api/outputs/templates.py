"""Templates, and what one looks like rendered."""

from typing import Any, Literal

from pydantic import Field

from messaging.api.outputs.common import DetailOutput, Output

Channel = Literal["EMAIL", "SMS", "PUSH"]


class VersionOutput(Output):
    """One version of a template."""

    name: str
    language: str = Field(examples=["en_GB"])
    channel: Channel
    category: str
    status: Literal["DRAFT", "ACTIVE", "ARCHIVED"]
    version: int
    variables: dict[str, Any] = Field(description="JSON Schema of what the texts need.")
    updated_at: str = Field(description="When it became active, else when it was made.")


class TemplatesOutput(Output):
    templates: list[VersionOutput]
    next_cursor: str | None


class SmsOutput(Output):
    """What an SMS takes; `units` are septets (GSM-7) or UTF-16 units (UCS-2)."""

    encoding: Literal["GSM-7", "UCS-2"]
    characters: int
    units: int
    segments: int


class RenderOutput(Output):
    """A version as it would be sent; what its channel does not have is null."""

    name: str
    language: str
    channel: Channel
    version: int
    subject: str | None
    text: str | None
    html: str | None
    title: str | None
    body: str | None
    data: dict[str, str] | None
    sms: SmsOutput | None
    missing: list[str] = Field(description="Variables without a value, which left a gap.")
    warnings: list[DetailOutput]
