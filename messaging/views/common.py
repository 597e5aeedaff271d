"""What all calls read of a request."""

from rest_framework.request import Request

from rme.tenants.authentication import Caller


def caller(request: Request) -> Caller:
    """Give who calls: the authentication class put it there."""
    found: Caller = request.auth  # type: ignore[assignment]
    return found


def request_id(request: Request) -> str:
    """Give the id of the request in hand."""
    identifier: str = request._request.id  # type: ignore[attr-defined]
    return identifier
