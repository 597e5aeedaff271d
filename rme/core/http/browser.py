"""Middleware for pages in a browser, which API calls skip.

Sessions, CSRF, messages and CSP cost as much as the rest of a REST request together, and a call
with a bearer token needs none of them. So they form a chain of their own, for requests whose path
begins with no prefix of API calls.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

POLL_HEADER = "X-Rme-Poll"
"""Pages that read themselves again send it. Other sites can't: the console doesn't allow CORS."""
Handler = Callable[[HttpRequest], HttpResponse]


def is_poll(request: HttpRequest) -> bool:
    """Return whether a page sent the request by itself, without its person doing anything."""
    return request.method == "GET" and POLL_HEADER in request.headers


class BrowserMiddleware:
    """Runs `BROWSER_MIDDLEWARE` for all requests but API calls (`API_PREFIXES`)."""

    def __init__(self, get_response: Handler) -> None:
        self.direct = get_response
        chain = get_response
        self.view_hooks: list[Any] = []
        for path in reversed(settings.BROWSER_MIDDLEWARE):
            chain = import_string(path)(chain)
            if hasattr(chain, "process_view"):
                self.view_hooks.insert(0, chain.process_view)
        self.chain = chain

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(settings.API_PREFIXES):
            return self.direct(request)
        response = self.chain(request)
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "no-store"  # a page may show data of its session
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Call the hooks of the chain: CSRF protection is one."""
        if request.path_info.startswith(settings.API_PREFIXES):
            return None
        for hook in self.view_hooks:
            response: HttpResponse | None = hook(request, view, args, kwargs)
            if response is not None:
                return response
        return None
