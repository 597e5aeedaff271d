"""Entries of the consent ledger."""

from typing import Literal

from pydantic import Field, RootModel

from messaging.api.outputs.common import ErrorObject, Output


class ConsentOutput(Output):
    """One entry of the ledger."""

    id: str
    contact_id: str
    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    category: str
    status: Literal["OPTED_IN", "OPTED_OUT"]
    source: Literal[
        "API", "ADMIN", "PREFERENCE_PAGE", "ONE_CLICK", "SMS_KEYWORD", "IMPORT", "DOUBLE_OPT_IN"
    ]
    occurred_at: str = Field(description="ISO 8601, UTC.")
    recorded_at: str = Field(description="ISO 8601, UTC.")


class ConsentItemOutput(Output):
    """The entry made of one item, or the item's error."""

    index: int
    entry: ConsentOutput | None = None
    error: ErrorObject | None = None


class ConsentEntriesOutput(Output):
    accepted: int
    rejected: int
    results: list[ConsentItemOutput]


class ConsentAnswer(RootModel[ConsentOutput | ConsentEntriesOutput]):
    """The entry, or one result for each of many."""


class ConsentPageOutput(Output):
    consent: list[ConsentOutput]
    next_cursor: str | None
