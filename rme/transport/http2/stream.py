"""One request over HTTP/2 (RFC 9113 §8): its header fields, and its response so far."""

import time
from functools import lru_cache

from rme.transport.addresses import Origin
from rme.transport.http2 import header_fields
from rme.transport.messages import Failure, FailureKind, Reply, Request


class Stream:
    """One request, and its response so far."""

    __slots__ = (
        "began", "block", "chunks", "id", "length", "origin", "reached", "request", "status",
        "unsent", "window",
    )  # fmt: skip

    following: None = None
    """Nothing leaves with it; see `Mail.following`."""

    def __init__(self, request: Request, origin: Origin) -> None:
        self.request = request
        self.origin = origin
        self.began = time.monotonic()
        self.id = self.status = self.length = self.window = 0
        self.block = b""
        self.unsent: bytes | memoryview = request.body
        self.chunks: list[bytes] = []
        self.reached = False
        """Whether the host accepted a connection."""

    @property
    def deadline(self) -> float:
        """When it will be late (monotonic)."""
        request = self.request
        if self.reached:
            return self.began + request.timeout
        return self.began + min(request.timeout, request.connect_timeout)

    def failure(self, kind: FailureKind, reason: str) -> Failure:
        """Return a failure: there is no complete response."""
        return Failure(kind, reason, self.status)

    def result(self) -> Reply | Failure:
        """Return the response, whose end has arrived."""
        headers = header_fields.Fields(self.block)
        if self.chunks and self.request.method != "HEAD":
            announced = headers.get("content-length")
            if announced is not None and announced != str(self.length):
                return self.failure(FailureKind.UNKNOWN, "half an answer")
        elapsed = time.monotonic() - self.began
        return Reply(self.status, headers, b"".join(self.chunks), elapsed=elapsed)


def head(request: Request) -> bytes:
    """Return a request's header fields, encoded (§8.3.1)."""
    authority, path = _target(request.url)
    parts = [_common_start(request.method, authority), header_fields.text(path)]
    if common := request.common_headers:
        common.block = common.block or header_fields.block(common.headers)
        parts.append(common.block)
    parts.append(header_fields.block(request.headers))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        parts += header_fields.CONTENT_LENGTH_NAME, header_fields.text(str(len(request.body)))
    return b"".join(parts)


@lru_cache(maxsize=256)
def _common_start(method: str, authority: str) -> bytes:
    """Return the fields that requests to a host have in common, up to the name of the path."""
    method_field = header_fields.METHOD_POST if method == "POST" else None
    return (
        (method_field or header_fields.field(":method", method))
        + header_fields.SCHEME_HTTPS
        + header_fields.field(":authority", authority)
        + header_fields.PATH_NAME
    )


def _target(url: str) -> tuple[str, str]:
    """Return the authority and the path of a URL."""
    _, _, authority, *path = url.partition("#")[0].split("/", 3)
    if "?" in authority:
        authority, _, query = "/".join([authority, *path]).partition("?")
        return authority, f"/?{query}"
    return authority, f"/{path[0]}" if path else "/"
