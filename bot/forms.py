"""Reading a call: its parameters by name, from the query or from a form, and who says it calls.

Names are compared without their case, and what is not known is passed over. A body that cannot be
read is a problem only after the key: the query may name the organization.
"""

from dataclasses import dataclass

from django.core.exceptions import (
    BadRequest,
    RequestDataTooBig,
    SuspiciousMultipartForm,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

from bot.envelope import Failure

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
    """What came by query or form. All values of a name that differ are there."""

    values: dict[str, list[str]]

    def all(self, name: str) -> list[str]:
        """Give the different values of a parameter, as they came."""
        return self.values.get(name.lower(), [])


NO_PARAMETERS = Parameters({})


@dataclass(frozen=True, slots=True)
class Form:
    """A body, or why it cannot be read."""

    parameters: Parameters
    problem: Failure | None = None


def query(request: HttpRequest) -> Parameters:
    """Read the query; one of a thousand parameters is no query."""
    try:
        return _fold(request.GET)
    except TooManyFieldsSent:
        return NO_PARAMETERS


def form(request: HttpRequest) -> Form:
    """Read the body, once: Django takes what it could not read for empty the next time."""
    known: Form | None = getattr(request, "bot_form", None)
    if known is None:
        known = request.bot_form = _read(request)  # type: ignore[attr-defined]
    return known


def _read(request: HttpRequest) -> Form:
    if request.method == "GET":
        return Form(NO_PARAMETERS)
    length = str(request.META.get("CONTENT_LENGTH", ""))
    if length.isdecimal() and int(length) > BODY_LIMIT:
        return _problem(413, "payload_too_large", "The body is larger than 1 MiB.")
    if request.content_type not in FORMS:
        return _problem(415, "unsupported_media_type", "The body must be a form.")
    try:
        return Form(_fold(request.POST))
    except RequestDataTooBig:
        return _problem(413, "payload_too_large", "The body is larger than 1 MiB.")
    except UNREADABLE:
        return _problem(400, "invalid_parameter", "The body cannot be read.")
    except BadRequest:  # a form that is not UTF-8
        return _problem(415, "unsupported_media_type", "The form must be in UTF-8.")


def organization(*given: Parameters) -> str:
    """Give the one organization that a call names; empty where it names none, or several."""
    named = {value for each in given for value in each.all("org")}
    return named.pop() if len(named) == 1 else ""


def _fold(given: QueryDict) -> Parameters:
    values: dict[str, list[str]] = {}
    for name, texts in given.lists():
        known = values.setdefault(name.lower(), [])
        known.extend(text for text in dict.fromkeys(texts) if text not in known)
    return Parameters(values)


def _problem(code: int, error: str, message: str) -> Form:
    return Form(NO_PARAMETERS, Failure(code, error, message))
