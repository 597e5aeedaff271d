"""/metrics of workers, at METRICS_PORT: for machines and pods without a web process.

One scrape at a time, and five seconds for each: a slow client costs no memory.
"""

import os
from collections.abc import Iterable
from socket import AF_INET6
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.http import Http404, HttpResponse

from rme import metrics


class _Handler(WSGIRequestHandler):
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: scrapes come every few seconds."""


class _Server6(WSGIServer):
    address_family = AF_INET6


def serve() -> None:
    """Answer for ever."""
    host = os.environ.get("HOST") or "127.0.0.1"
    kind = _Server6 if ":" in host else WSGIServer
    with kind((host, settings.METRICS_PORT), _Handler) as server:
        server.set_app(application)
        server.serve_forever()


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    request = WSGIRequest(environ)
    try:
        if request.path != "/metrics":
            raise Http404
        response = metrics.show_processes(request)
    except Http404:
        response = HttpResponse("Not found.\n", status=404, content_type="text/plain")
    status = f"{response.status_code} {response.reason_phrase}"
    start_response(status, list(response.items()))
    return [response.content]
