"""Bodies sent with `Transfer-Encoding: chunked`, which plain WSGI shows to Django as empty."""

import io
from collections.abc import Callable, Iterable
from typing import Any

LIMIT = 6 * 1024 * 1024
"""A little more than any body the service takes, so that the views refuse it by their own rule."""

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class ChunkedBodies:
    """Read a chunked body, bounded, and say its length (PEP 3333 leaves this to the server)."""

    def __init__(self, app: App) -> None:
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if chunked and not environ.get("CONTENT_LENGTH"):
            body = environ["wsgi.input"].read(LIMIT)
            environ["wsgi.input"] = io.BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return self.app(environ, start_response)
