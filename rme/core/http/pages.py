"""Answers for browsers: the error page, and where to go after a form."""

from urllib.parse import urlsplit

from django.core.exceptions import DisallowedHost
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
    context = {
        "error": error,
        "request_id": getattr(request, "id", ""),
        "way_on": CONSOLE if request.path_info.startswith(CONSOLE) else "",
        "form_url": _back_url(request),
    }
    headers = {**error.headers, "Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    page = render_to_string("error.html", context)
    return HttpResponse(page, status=error.status, headers=headers)


def page_of(request: HttpRequest) -> str:
    """Return the address of the page that a person had open: of a POST, the page of its form.

    Empty: the browser doesn't say, or it is no page of the console.
    """
    if request.method != "POST":
        return request.get_full_path()
    try:
        page, host = urlsplit(request.headers.get("Referer", "")), request.get_host()
    except (ValueError, DisallowedHost):  # the error that is shown may be about it
        return ""
    if page.netloc != host or not page.path.startswith(CONSOLE):
        return ""
    return f"{page.path}?{page.query}" if page.query else page.path


def _back_url(request: HttpRequest) -> str:
    """Return the address of the page of a form, marked so that its input comes back there."""
    page = page_of(request) if request.method == "POST" else ""
    return page and f"{page}{'&' if '?' in page else '?'}input-back=1"


def see_other(url: str) -> HttpResponse:
    """Return a redirect that the browser follows by GET (303), so that a reload sends no form."""
    response = HttpResponseRedirect(url)
    response.status_code = 303
    return response
