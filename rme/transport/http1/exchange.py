"""One HTTP/1.1 exchange: a request on a libcurl easy handle, from its options to its last callback.

libcurl sends a request again when a reused connection is lost before any response. It does so with
POST, so the other side may receive it twice, and no option prevents that. But it calls
PREREQFUNCTION each time it is about to write a request, and the callback may end the exchange:
the second call for a request ends it. Before the first call nothing of the request was written.
The callback also detects a reused connection that the other side has closed (`reused_connections`).
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
"""Safe methods (RFC 9110 §9.2.1): libcurl may send these again."""
_IDLE_SECONDS = 45
"""A connection that was idle for longer is not reused: most servers close after a minute, and a
request written at that moment would end as UNKNOWN."""


class Exchange:
    """An easy handle and its callbacks, reused for one request at a time."""

    following: None = None
    """Nothing leaves with it; see `Mail.following`."""

    def __init__(
        self, policy: AddressPolicy, resolve: list[str], reused: ReusedConnections
    ) -> None:
        self.curl = pycurl.Curl()
        self.policy = policy
        self.resolve = resolve
        self.reused = reused
        self.chunks: list[bytes] = []
        """The response's body."""
        self.header_lines: list[bytes] = []
        """The response's header lines."""
        self._shape: tuple[object, ...] | None = None

    @property
    def reached(self) -> bool:
        """Return whether the host accepted a connection."""
        return self.started > 0

    def start(self, request: Request, origin: Origin) -> None:
        """Set up the handle for a request. A multi handle has to run it."""
        self.request = request
        self.origin = origin
        self.started = 0
        self.refused = False
        self.stale = False
        self.port = 0
        """The local port of the connection that the request went by."""
        self.chunks.clear()
        self.header_lines.clear()
        shape = _shape(request)
        if shape != self._shape:  # most requests differ only in the options below
            self._shape = None
            self._set_up(request)
            self._shape = shape
        curl = self.curl
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.HTTPHEADER, _written_headers(request))
        if _has_body(request):
            curl.setopt(pycurl.POSTFIELDS, request.body)

    def _set_up(self, request: Request) -> None:
        curl = self.curl
        curl.reset()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROXY, "")  # never through http_proxy and the like
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
        curl.setopt(pycurl.HEADERFUNCTION, self.header_lines.append)  # libcurl limits their size
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
        """Return the socket that is to connect, if its address may be called."""
        family, kind, protocol, target = address
        is_open = self.policy.opens(self.origin.host, self.origin.port)
        if not (is_open or self.policy.allows(target[0], target[1])):
            self.refused = True
            refusal: int = pycurl.SOCKET_BAD
            return refusal
        return socket.socket(family, kind, protocol)

    def _before_request(
        self, remote_ip: str, local_ip: str, remote_port: int, local_port: int
    ) -> int:
        """Count the times the request is written; stop a second time, or on a closed connection."""
        stop: int = pycurl.PREREQFUNC_ABORT
        go: int = pycurl.PREREQFUNC_OK
        if self.request.method in _REPEATABLE:
            self.started += 1
            return go
        if self.started == 0 and self.reused.is_closed(local_port):
            if self.reused.shut(local_port):
                return go  # the write fails, and libcurl calls again with another connection
            self.stale = True
            return stop
        self.started += 1
        if self.started > 1:
            return stop
        self.port = local_port
        self.reused.enter(local_port)
        return go

    def leave_connection(self) -> None:
        """Note that this exchange no longer uses its connection."""
        if self.port:
            self.reused.leave(self.port)
            self.port = 0


def _shape(request: Request) -> tuple[object, ...]:
    """Return what the options of `_set_up` depend on."""
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
    return f"{name}: {value}" if value else f"{name};"  # `Name:` would remove the header


def _written_headers(request: Request) -> list[str]:
    """Return the header lines, and remove those that libcurl would add."""
    common = request.common_headers.headers if request.common_headers else ()
    lines = [_header_line(name, value) for name, value in (*common, *request.headers)]
    return ["Expect:", "Content-Type:", "User-Agent:", *lines]


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))  # 0 would mean no limit
