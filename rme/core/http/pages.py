"""The error page for browsers."""

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from rme.core import errors

POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def error_page(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Return an error as a page: its message, and the request id, by which the log has it."""
    context = {"error": error, "request_id": getattr(request, "id", "")}
    headers = {**error.headers, "Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    page = render_to_string("error.html", context)
    return HttpResponse(page, status=error.status, headers=headers)
