"""The base of all answers, and the shape of errors."""

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Output(BaseModel):
    """Base: camelCase on the wire, nothing that is not described."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=True)


class DetailOutput(Output):
    field: str = Field(examples=["to[0].contactId"])
    message: str


class ErrorObject(Output):
    code: str = Field(examples=["INVALID_PAYLOAD"])
    message: str
    message_id: str | None
    request_id: str
    details: list[DetailOutput]


class ErrorOutput(Output):
    """Every error has this shape."""

    error: ErrorObject
