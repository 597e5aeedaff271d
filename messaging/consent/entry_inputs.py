"""Input of the consent resource."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, RootModel, StringConstraints, TypeAdapter

from rme.core.http.fields import (
    CategoryName,
    Cursor,
    Instant,
    Limit,
    Query,
    RecordId,
    Schema,
    Switch,
    Upper,
    at_most,
)

AnyChannel = Annotated[Literal["EMAIL", "SMS", "PUSH", "ALL"], Upper]
ConsentStatus = Annotated[Literal["OPTED_IN", "OPTED_OUT"], Upper]
Source = Annotated[
    Literal[
        "API", "ADMIN", "PREFERENCE_PAGE", "ONE_CLICK", "SMS_KEYWORD", "IMPORT", "DOUBLE_OPT_IN"
    ],
    Upper,
]
Evidence = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=2000)],
    ],
    Field(max_length=20, examples=[{"form": "Newsletter, footer", "ip": "192.0.2.7"}]),
    at_most(20),
]


class ConsentInput(Schema):
    """One person's decision. Without `occurredAt` it was made now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "contactId": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
                    "channel": "EMAIL",
                    "category": "MARKETING",
                    "status": "OPTED_IN",
                    "evidence": {"form": "Newsletter, footer"},
                }
            ]
        }
    )

    contact_id: RecordId
    channel: AnyChannel
    category: CategoryName = Field(description="A category of the organization, or ALL.")
    status: ConsentStatus
    source: Source = Field("API", description="Where it was decided; imports state theirs.")
    evidence: Evidence = Field(default_factory=dict)
    occurred_at: Instant | None = Field(
        None, description="Up to 60 s ahead counts as now; further ahead is refused."
    )


class ConsentEntries(Schema):
    """Many entries, for the OpenAPI description."""

    entries: Annotated[list[ConsentInput], Field(min_length=1, max_length=500)]


class ConsentBody(RootModel[ConsentInput | ConsentEntries]):
    """One entry or many, for the OpenAPI description: each is parsed by its own schema."""


CONSENT = TypeAdapter(ConsentInput)


class ConsentQuery(Query):
    """The query of GET /consent."""

    contact_id: RecordId | None = None
    channel: AnyChannel | None = None
    category: CategoryName | None = None
    history: Switch = False
    limit: Limit = 50
    cursor: Cursor | None = None
