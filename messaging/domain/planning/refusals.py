"""Why a request or a recipient is refused. `accept` turns these into the errors of the API."""

from enum import StrEnum
from typing import NamedTuple


class RefusalCode(StrEnum):
    """The code of a refusal, by which callers know it."""

    INVALID_PAYLOAD = "INVALID_PAYLOAD"
    NOT_FOUND = "NOT_FOUND"
    FORBIDDEN = "FORBIDDEN"
    TEMPLATE_NOT_FOUND = "TEMPLATE_NOT_FOUND"
    UNREACHABLE = "UNREACHABLE"
    DUPLICATE_ADDRESS = "DUPLICATE_ADDRESS"
    SUPPRESSED = "SUPPRESSED"
    NO_CONSENT = "NO_CONSENT"
    FREQUENCY_CAPPED = "FREQUENCY_CAPPED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    RATE_LIMITED = "RATE_LIMITED"


class FieldProblem(NamedTuple):
    """A field of the request, as a path like `to[0].contactId`, and its problem."""

    field: str
    problem: str


class SendRefusal(NamedTuple):
    """Why a request or a recipient is refused."""

    code: RefusalCode
    text: str = ""
    """Empty: the code says it all."""
    fields: tuple[FieldProblem, ...] = ()
    permission: str = ""
    """FORBIDDEN: the permission that the caller lacks."""
    retry_after: int | None = None
    """RATE_LIMITED: after how many seconds the request may be repeated."""


def invalid(field: str, problem: str) -> SendRefusal:
    """Build the refusal of a field's value."""
    return _at(RefusalCode.INVALID_PAYLOAD, field, problem)


def not_found(field: str, problem: str) -> SendRefusal:
    """Build the refusal of a field that names what doesn't exist."""
    return _at(RefusalCode.NOT_FOUND, field, problem)


def _at(code: RefusalCode, field: str, problem: str) -> SendRefusal:
    return SendRefusal(code, f"{field}: {problem}", (FieldProblem(field, problem),))
