"""Input of the template resource."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter

from rme.core.http.fields import (
    ChannelName,
    Cursor,
    Integer,
    Language,
    Limit,
    Printable,
    Query,
    RecordId,
    Schema,
    Upper,
    Variables,
)

Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Printable]


class TemplatesQuery(Query):
    """The query of GET /templates."""

    name: Name | None = None
    channel: ChannelName | None = None
    language: Language | None = None
    status: Annotated[Literal["DRAFT", "ACTIVE", "ARCHIVED"], Upper] | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class ContextInput(Schema):
    record_id: RecordId | None = None
    variables: Variables = Field(default_factory=dict)


class RenderInput(Schema):
    """Which version of a template to render, for whom and with what."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"language": "en_US", "channel": "EMAIL", "variables": {"note": "Hello"}},
            ]
        }
    )

    language: Language | None = Field(
        None, description="Left out: the contact's, else the organization's."
    )
    channel: ChannelName | None = Field(
        None,
        description="Left out: the first of EMAIL, SMS, PUSH that has the template; a warning "
        "names the others.",
    )
    version: Annotated[int, Field(ge=1, le=2_147_483_647), Integer] | None = Field(
        None, description="Any version, a draft too. Left out: the active one."
    )
    contact_id: RecordId | None = Field(
        None, description="Left out: nobody, so that `contact.*` is missing."
    )
    context: ContextInput | None = None
    variables: Variables = Field(
        default_factory=dict, description="As a recipient's: they go over `context.variables`."
    )


RENDER = TypeAdapter(RenderInput)
