"""Input of the template resource."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter

from rme.core.http.fields import (
    Badge,
    ChannelName,
    Cursor,
    Data,
    Integer,
    Language,
    Limit,
    Line,
    LongText,
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


class DraftInput(Schema):
    """The texts of a version as a person writes them; those of other channels are left out."""

    subject: Line = ""
    text: LongText = ""
    html: LongText = ""
    mjml: LongText = ""
    title: Annotated[str, StringConstraints(max_length=1000)] = ""
    body: LongText = ""
    data: Data = Field(default_factory=dict)
    badge: Badge | None = None
    image: Annotated[str, StringConstraints(max_length=2000)] = ""
    link: Annotated[str, StringConstraints(max_length=2000)] = ""
    variables: dict[str, Any] = Field(default_factory=dict)


RENDER = TypeAdapter(RenderInput)
DRAFT = TypeAdapter(DraftInput)
