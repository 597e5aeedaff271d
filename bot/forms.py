"""Parameters of a call, from the query or a form, and the organization that it names.

Names are case-insensitive and unknown names are ignored. An unreadable body is reported only after
authentication, because the query may name the organization.
"""

from dataclasses import dataclass
from typing import cast

from django.core.exceptions import (
    BadRequest,
    RequestDataTooBig,
    SuspiciousMultipartForm,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

from bot.envelope import BotFailure
from rme.core.errors import InvalidPayload
from rme.core.http import parsing

BODY_LIMIT = 1024 * 1024
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
UNREADABLE = (
    MultiPartParserError,
    SuspiciousMultipartForm,
    TooManyFieldsSent,
    TooManyFilesSent,
    UnreadablePostError,
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a query or form, with all different values of each name."""

    values: dict[str, list[str]]

    def all(self, name: str) -> list[str]:
        """Return the different values of a parameter, in order and unchanged."""
        return self.values.get(name.lower(), [])


NO_PARAMETERS = Parameters({})


@dataclass(frozen=True, slots=True)
class Form:
    """The parameters of a body, or the reason why it cannot be read."""

    parameters: Parameters
    problem: BotFailure | None = None


class _ParsedRequest(HttpRequest):
    """A request whose body has been parsed."""

    bot_form: Form


def query(request: HttpRequest) -> Parameters:
    """Return the parameters of the query; none if there are too many to be a real call."""
    try:
        return _fold(request.GET)
    except TooManyFieldsSent:
        return NO_PARAMETERS


def form(request: HttpRequest) -> Form:
    """Return the parsed body.

    It is parsed once: after an error, Django's second attempt returns an empty form.
    """
    parsed: Form | None = getattr(request, "bot_form", None)
    if parsed is None:
        parsed = cast(_ParsedRequest, request).bot_form = _read(request)
    return parsed


def _read(request: HttpRequest) -> Form:
    if request.method == "GET":
        return Form(NO_PARAMETERS)
    length = str(request.META.get("CONTENT_LENGTH", ""))
    if length.isdecimal() and int(length) > BODY_LIMIT:
        return _problem(413, "payload_too_large", "The body is larger than 1 MiB.")
    if request.content_type not in FORMS:
        return _not_a_form(request)
    try:
        return Form(_fold(request.POST))
    except RequestDataTooBig:
        return _problem(413, "payload_too_large", "The body is larger than 1 MiB.")
    except UNREADABLE:
        return _problem(400, "invalid_parameter", "The body cannot be read.")
    except BadRequest:  # a form that is not UTF-8
        return _problem(415, "unsupported_media_type", "The form must be in UTF-8.")


def _not_a_form(request: HttpRequest) -> Form:
    """Return the problem of a body of another type, with the organization that it names.

    Without that, a bot that sends JSON would hear that its key is wrong.
    """
    problem = BotFailure(
        415,
        "unsupported_media_type",
        f"Send the fields as a form ({' or '.join(sorted(FORMS))}), not as "
        f"{request.content_type or 'a body without a Content-Type'}.",
    )
    try:
        fields = parsing.read_json(request.body)
    except (RequestDataTooBig, UnreadablePostError, InvalidPayload):
        fields = None
    if not isinstance(fields, dict):
        return Form(NO_PARAMETERS, problem)
    names = [str(value) for name, value in fields.items() if name.lower() == "org"]
    return Form(Parameters({"org": names}), problem)


def organization(*sources: Parameters) -> str:
    """Return the organization id that a call names; empty if there is none or more than one."""
    organizations = {value for each in sources for value in each.all("org")}
    return organizations.pop() if len(organizations) == 1 else ""


def _fold(query: QueryDict) -> Parameters:
    values: dict[str, list[str]] = {}
    for name, texts in query.lists():
        merged = values.setdefault(name.lower(), [])
        merged.extend(text for text in dict.fromkeys(texts) if text not in merged)
    return Parameters(values)


def _problem(code: int, error: str, message: str) -> Form:
    return Form(NO_PARAMETERS, BotFailure(code, error, message))
