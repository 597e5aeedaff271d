"""Bodies with `Transfer-Encoding: chunked`, which Django reads as empty under plain WSGI."""

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any

LIMIT = 6 * 1024 * 1024
"""Slightly more than the largest body that the service takes. A body that reaches it is passed on
with the length `sys.maxsize`, so that it is refused by its length."""
INCOMPLETE = "rme.incomplete_body"
"""Set in WSGI's environment if a body ended too early."""
PIECE = 64 * 1024
"""Bytes read at once: the server keeps a buffer of that size with the request."""

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class ChunkedBodies:
    """Reads a chunked body and sets its length (PEP 3333 leaves this to the server)."""

    def __init__(self, app: App) -> None:
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., object]) -> Iterable[bytes]:
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not chunked or environ.get("CONTENT_LENGTH"):
            return self.app(environ, start_response)
        read, body = environ["wsgi.input"].read, io.BytesIO()
        while body.tell() < LIMIT and (piece := read(PIECE)):
            body.write(piece)
        too_long = body.tell() >= LIMIT
        environ["CONTENT_LENGTH"] = str(sys.maxsize if too_long else body.tell())
        environ["wsgi.input"] = io.BytesIO() if too_long else body
        body.seek(0)
        try:
            return self.app(environ, start_response)
        finally:
            # The request is freed only by the cycle collector, and would keep its body until then.
            body.close()
