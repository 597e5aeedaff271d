"""What the resources share: the caller of a request, the base of answers, pages and errors."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel
from rest_framework.request import Request

from messaging.domain.channels import Channel
from rme.core import errors
from rme.core.db.clock import iso
from rme.core.http.api import id_of, json_response
from rme.core.http.fields import ENUMERATED, Schema
from rme.core.http.parsing import may_hold_nul, parse, refuse_nul, refuse_nul_in
from rme.tenants.oauth.authentication import Caller

T = TypeVar("T")


def caller(request: Request) -> Caller:
    """Return the caller, whom the authentication class has found."""
    return cast(Caller, request.auth)


def request_id(request: Request) -> str:
    """Return the id of a request."""
    return id_of(request._request)


# --- input ----------------------------------------------------------------------------------------


def body_of(request: Request) -> object:
    """Return the body. Raises InvalidPayload if it contains a NUL character."""
    body = request.data
    refuse_nul_in(body, request._request.body)
    return body


class EntriesInput(Schema):
    """The body of a request for many entries, which are parsed one by one."""

    entries: Annotated[list[object], Field(min_length=1, max_length=500)]


ENTRIES = TypeAdapter(EntriesInput)


def entries_of(request: Request) -> tuple[Sequence[object], bool]:
    """Return the entries of a body, unparsed, and whether it holds many; else it is the only one.

    Raise InvalidPayload if there are none, or too many.
    """
    body = request.data
    if isinstance(body, dict) and "entries" in body:
        return parse(ENTRIES, body).entries, True
    return [body], False


def read_each(
    request: Request, items: Sequence[object], read: Callable[[object], T]
) -> list[T | errors.InvalidPayload]:
    """Read each item of a body, or return its error in its place."""
    look_for_nul = may_hold_nul(request._request.body)

    def read_one(item: object) -> T | errors.InvalidPayload:
        try:
            if look_for_nul:
                refuse_nul(item)
            return read(item)
        except errors.InvalidPayload as error:
            return error

    return [read_one(item) for item in items]


# --- output ---------------------------------------------------------------------------------------


def _time(value: object) -> object:
    return iso(value) if isinstance(value, datetime) else value


def _identifier(value: object) -> object:
    return str(value) if isinstance(value, UUID | int) else value


Time = Annotated[str, BeforeValidator(_time)]
"""An instant, which is written in ISO 8601, UTC."""
Identifier = Annotated[str, BeforeValidator(_identifier)]
TextOrNone = Annotated[str | None, BeforeValidator(lambda value: value or None)]
"""A text that a row has empty: null in JSON."""

ChannelValue = Annotated[Channel, ENUMERATED]
AnyChannelValue = Literal["EMAIL", "SMS", "PUSH", "ALL"]
"""A channel, or all of them."""


class Output(BaseModel):
    """Base of what the calls answer. OpenAPI is made from these models, and the answers are too.

    In JSON names are camelCase. A field that has a default is left out where it is None.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", from_attributes=True, populate_by_name=True
    )


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


def error_object(error: errors.ApiError, identifier: str) -> ErrorObject:
    """Build the error of one item of many. `identifier` is the request's."""
    return ErrorObject.model_validate(error.as_json(identifier))


class EntriesOutput(Output):
    """How many entries were accepted; a subclass adds the result of each."""

    accepted: int
    rejected: int


def bulk(
    kind: type[EntriesOutput],
    results: Sequence[T | errors.ApiError],
    show: Callable[[T], object],
    identifier: str,
) -> HttpResponse:
    """Answer 201 to many items: how many were accepted, and the entry or the error of each.

    `show` returns the row of a result.
    """
    shown = [
        {"index": index, "error": error_object(each, identifier)}
        if isinstance(each, errors.ApiError)
        else {"index": index, "entry": show(each)}
        for index, each in enumerate(results)
    ]
    accepted = sum("entry" in item for item in shown)
    counts = {"accepted": accepted, "rejected": len(shown) - accepted}
    return answer(kind.model_validate({**counts, "results": shown}), 201)


def only(results: Sequence[T | errors.ApiError]) -> T:
    """Return the result of the only entry. Raise its error."""
    (result,) = results
    if isinstance(result, errors.ApiError):
        raise result
    return result


def answer(
    output: Output, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Answer with an output model as JSON."""
    return json_response(json_of(output), status, headers)


def json_of(output: Output) -> bytes:
    """Return the JSON text of an output model."""
    return output.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def no_content() -> HttpResponse:
    """Answer 204, without a body."""
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response


def page(
    request: Request, kind: type[Output], shown: Mapping[str, object], following: str | None
) -> HttpResponse:
    """Answer with a page of a list, and with the address of the next page (RFC 8288).

    `following` is the cursor of the next page; None: there is none.
    """
    response = answer(kind.model_validate({**shown, "next_cursor": following}))
    if following:
        query = request._request.GET.copy()
        query["cursor"] = following
        url = f"{settings.BASE_URL}{request.path}?{query.urlencode()}"
        response["Link"] = f'<{url}>; rel="next"'
    return response
