"""One request on its way over HTTP/2 (RFC 9113 §8): how it is written, and what has come of it."""

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from rme.transport.addresses import Origin
from rme.transport.http1.exchange import Exchange
from rme.transport.http2 import header_fields
from rme.transport.messages import Failure, FailureKind, Reply, Request

if TYPE_CHECKING:
    from rme.transport.http2.connection import Http2Connection


class Stream:
    """One request under way, and what has come of it so far."""

    __slots__ = (
        "began", "block", "chunks", "connection", "id", "instead", "length", "reached", "request",
        "status", "unsent", "where", "window",
    )  # fmt: skip

    def __init__(self, request: Request, where: Origin) -> None:
        self.request = request
        self.where = where
        self.began = time.monotonic()
        self.connection: Http2Connection | None = None
        """The one that it was written on."""
        self.instead: Exchange | None = None
        """What it goes by where the host speaks HTTP/1.1 alone."""
        self.id = self.status = self.length = self.window = 0
        self.block = b""
        self.unsent: bytes | memoryview = request.body
        self.chunks: list[bytes] = []
        self.reached = False
        """Whether the host was there and took a connection."""

    @property
    def deadline(self) -> float:
        """When it will have taken too long (monotonic)."""
        request = self.request
        if self.reached:
            return self.began + request.timeout
        return self.began + min(request.timeout, request.connect_timeout)

    def failure(self, kind: FailureKind, reason: str) -> Failure:
        """Say that there is no whole answer."""
        return Failure(kind, reason, self.status)

    def result(self) -> Reply | Failure:
        """Give the answer, which has ended."""
        headers = header_fields.Fields(self.block)
        if self.chunks and self.request.method != "HEAD":
            announced = headers.get("content-length")
            if announced is not None and announced != str(self.length):
                return self.failure(FailureKind.UNKNOWN, "half an answer")
        elapsed = time.monotonic() - self.began
        return Reply(self.status, headers, b"".join(self.chunks), elapsed=elapsed)


def head(request: Request) -> bytes:
    """Write a request's fields (§8.3.1)."""
    authority, path = _target(request.url)
    parts = [_begin(request.method, authority), header_fields.text(path)]
    if common := request.common_headers:
        common.block = common.block or header_fields.block(common.headers)
        parts.append(common.block)
    parts.append(header_fields.block(request.headers))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        parts += header_fields.LENGTH, header_fields.text(str(len(request.body)))
    return b"".join(parts)


@lru_cache(maxsize=256)
def _begin(method: str, authority: str) -> bytes:
    """Write what the requests to a host have in common, up to the name of the path."""
    said = header_fields.POST if method == "POST" else header_fields.field(":method", method)
    return (
        said
        + header_fields.HTTPS
        + header_fields.field(":authority", authority)
        + header_fields.PATH
    )


def _target(url: str) -> tuple[str, str]:
    """Give who is asked, and for what."""
    _, _, authority, *path = url.partition("#")[0].split("/", 3)
    if "?" in authority:
        authority, _, query = "/".join([authority, *path]).partition("?")
        return authority, f"/?{query}"
    return authority, f"/{path[0]}" if path else "/"
