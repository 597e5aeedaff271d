"""One HTTP/1.1 exchange: a request on a libcurl easy handle, from its options to its last callback.

libcurl sends a request again by itself when a kept connection dies under it before any answer, and
does so with POST too: the other side may have it twice. It says so by no option. But
PREREQFUNCTION is called each time a request is about to be written, and may end the exchange; so
the second call for one request ends it, and the first is our proof that everything until then was
only connecting. There a kept connection that the other side has closed is noticed, too, while
nothing of ours is on it (see `kept`).
"""

import socket
from functools import lru_cache
from typing import Any

import certifi
import pycurl

from rme.transport.addresses import AddressPolicy, Origin
from rme.transport.http1.reused_connections import ReusedConnections
from rme.transport.messages import Request

_HTTP = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that are safe (RFC 9110 §9.2.1): these libcurl may send again by itself."""
_IDLE_SECONDS = 45
"""A connection idle for longer is not used again: most servers close theirs after a minute, and a
request written at that moment would end as UNKNOWN."""


class Exchange:
    """An easy handle with its callbacks, used again and again, for one request at a time."""

    def __init__(self, policy: AddressPolicy, resolve: list[str], kept: ReusedConnections) -> None:
        self.curl = pycurl.Curl()
        self.policy = policy
        self.resolve = resolve
        self.kept = kept
        self.chunks: list[bytes] = []
        """The answer's body."""
        self.lines: list[bytes] = []
        """The answer's header lines."""
        self._shape: tuple[object, ...] | None = None

    @property
    def reached(self) -> bool:
        """Say whether the host was there and took a connection."""
        return self.started > 0

    def begin(self, request: Request, where: Origin) -> None:
        """Set the handle up for a request. Nothing moves until a multi handle has it."""
        self.request = request
        self.where = where
        self.started = 0
        self.refused = False
        self.stale = False
        self.port = 0
        """The local port of the connection that the request went by."""
        self.chunks.clear()
        self.lines.clear()
        shape = _shape(request)
        if shape != self._shape:  # most requests differ only in what is set below
            self._shape = None
            self._set_up(request)
            self._shape = shape
        curl = self.curl
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.HTTPHEADER, _header_lines(request))
        if _has_body(request):
            curl.setopt(pycurl.POSTFIELDS, request.body)

    def _set_up(self, request: Request) -> None:
        curl = self.curl
        curl.reset()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROXY, "")  # never by way of http_proxy and its like
        curl.setopt(pycurl.NETRC, 0)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, _HTTP)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(request.connect_timeout))
        curl.setopt(pycurl.TIMEOUT_MS, _milliseconds(request.timeout))
        curl.setopt(pycurl.MAXAGE_CONN, _IDLE_SECONDS)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        curl.setopt(pycurl.WRITEFUNCTION, self.chunks.append)
        if self.resolve:
            curl.setopt(pycurl.RESOLVE, self.resolve)
        if request.ca_pem:
            curl.setopt(pycurl.CAINFO_BLOB, request.ca_pem)
        else:
            curl.setopt(pycurl.CAINFO, certifi.where())
        self._set_up_http(request)

    def _set_up_http(self, request: Request) -> None:
        curl = self.curl
        curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)  # libcurl bounds their size itself
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.MAXFILESIZE, request.max_response)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        if request.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif _has_body(request):
            curl.setopt(pycurl.POST, 1)
        else:
            curl.setopt(pycurl.HTTPGET, 1)
        if request.method not in ("GET", "HEAD"):
            curl.setopt(pycurl.CUSTOMREQUEST, request.method)

    def _open_socket(self, purpose: int, address: Any) -> socket.socket | int:
        """Open the socket that is about to connect, if its address may be called."""
        family, kind, protocol, where = address
        opened = self.policy.opens(self.where.host, self.where.port)
        if not (opened or self.policy.allows(where[0], where[1])):
            self.refused = True
            refusal: int = pycurl.SOCKET_BAD
            return refusal
        return socket.socket(family, kind, protocol)

    def _before_request(
        self, remote_ip: str, local_ip: str, remote_port: int, local_port: int
    ) -> int:
        """Take note that the request is about to be written; let no second time, nor a vain one."""
        stop: int = pycurl.PREREQFUNC_ABORT
        go: int = pycurl.PREREQFUNC_OK
        if self.request.method in _REPEATABLE:
            self.started += 1
            return go
        if self.started == 0 and self.kept.is_closed(local_port):
            if self.kept.shut(local_port):
                return go  # into the void: libcurl takes another, and comes here again
            self.stale = True
            return stop
        self.started += 1
        if self.started > 1:
            return stop
        self.port = local_port
        self.kept.enter(local_port)
        return go

    def leave(self) -> None:
        """Say that nothing of this exchange is on its connection any more."""
        if self.port:
            self.kept.leave(self.port)
            self.port = 0


def _shape(request: Request) -> tuple[object, ...]:
    """Give what a handle's lasting options depend on."""
    return (
        request.method,
        _has_body(request),
        request.connect_timeout,
        request.timeout,
        request.max_response,
        request.ca_pem,
    )


def _has_body(request: Request) -> bool:
    return bool(request.body) or request.method in ("POST", "PUT", "PATCH")


@lru_cache(maxsize=256)
def _header_line(name: str, value: str) -> str:
    return f"{name}: {value}" if value else f"{name};"  # `Name:` would take the header away


def _header_lines(request: Request) -> list[str]:
    """Write the headers, without the ones that libcurl would add by itself."""
    common = request.common_headers.headers if request.common_headers else ()
    lines = [_header_line(name, value) for name, value in (*common, *request.headers)]
    return ["Expect:", "Content-Type:", "User-Agent:", *lines]


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))  # 0 would mean no limit
