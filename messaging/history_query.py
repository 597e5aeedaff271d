"""The query of the history, as callers write it."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter

from messaging.outputs.messages import StatusName as KnownStatus
from messaging.schemas.fields import (
    CategoryName,
    ChannelName,
    Instant,
    RecordId,
    Schema,
    Upper,
)
from messaging.schemas.parsing import parse

StatusName = Annotated[KnownStatus, Upper]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value


class HistoryQuery(Schema):
    """The query of GET /messages."""

    contact_id: RecordId | None = None
    since: Instant | None = None
    until: Instant | None = None
    status: StatusName | None = None
    channel: ChannelName | None = None
    category: CategoryName | None = None
    limit: Annotated[int, Field(ge=1, le=200), BeforeValidator(_whole)] = 50
    cursor: Annotated[str, StringConstraints(max_length=64)] | None = None

    @classmethod
    def parameters(cls) -> list[str]:
        """Give the names of the parameters as callers write them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def read(cls, query: dict[str, Any]) -> "HistoryQuery":
        """Check a query; raise INVALID_PAYLOAD that names every parameter that is wrong."""
        return parse(TypeAdapter(cls), query)
