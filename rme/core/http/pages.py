"""Answers for browsers: the error page, and where to go after a form."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string

from rme.core import errors

POLICY = (
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)

CONSOLE = "/admin/"


def error_page(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Return an error as a page: its message, and the request id, by which the log has it."""
    way_on = CONSOLE if request.path_info.startswith(CONSOLE) else ""
    context = {"error": error, "request_id": getattr(request, "id", ""), "way_on": way_on}
    headers = {**error.headers, "Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    page = render_to_string("error.html", context)
    return HttpResponse(page, status=error.status, headers=headers)


def see_other(url: str) -> HttpResponse:
    """Return a redirect that the browser follows by GET (303), so that a reload sends no form."""
    response = HttpResponseRedirect(url)
    response.status_code = 303
    return response
