"""Suppressions, and what became of each entry of many."""

from typing import Literal

from pydantic import Field, RootModel

from messaging.api.outputs.common import ErrorObject, Output


class SuppressionOutput(Output):
    """An address, or a contact, that is not written to on a channel."""

    id: str
    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    address: str | None = Field(description="In its normal form.", examples=["ada@example.com"])
    contact_id: str | None
    reason: Literal["HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"]
    note: str | None
    source: str = Field(examples=["API", "ADMIN", "IMPORT", "PROVIDER"])
    created_at: str = Field(description="ISO 8601, UTC.")
    expires_at: str | None = Field(description="ISO 8601, UTC; null: never.")


class SuppressionListOutput(Output):
    suppressions: list[SuppressionOutput]
    next_cursor: str | None


class SuppressionResultOutput(Output):
    """One entry of many as it is on the list now, or what is wrong with it."""

    index: int
    entry: SuppressionOutput | None = None
    error: ErrorObject | None = None


class SuppressionBulkOutput(Output):
    accepted: int
    rejected: int
    results: list[SuppressionResultOutput]


class SuppressionAddedOutput(RootModel[SuppressionOutput | SuppressionBulkOutput]):
    """The new entry; of many, what became of each."""
