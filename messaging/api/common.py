"""What all calls read of a request."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from rme.core.http.api import json_response
from rme.tenants.authentication import Caller


def caller(request: Request) -> Caller:
    """Give who calls: the authentication class put it there."""
    found: Caller = request.auth  # type: ignore[assignment]
    return found


def request_id(request: Request) -> str:
    """Give the id of the request in hand."""
    identifier: str = request._request.id  # type: ignore[attr-defined]
    return identifier


def page(request: Request, body: dict[str, Any], following: str | None) -> HttpResponse:
    """Answer with a page of a list, and where the next one is (RFC 8288)."""
    response = json_response({**body, "nextCursor": following})
    if following:
        query = request._request.GET.copy()
        query["cursor"] = following
        url = f"{settings.BASE_URL}{request.path}?{query.urlencode()}"
        response["Link"] = f'<{url}>; rel="next"'
    return response
