"""How a server breaks, and the error of a read and of a create then."""

import socket
from typing import Any

from rme.crm.connectors.base import PlatformAway, PlatformError, PlatformSlow
from tests.fakes import tcp
from tests.fakes.http1 import Answer, Seen, respond


def _stall(connection: socket.socket, seen: Seen) -> None:
    tcp.stall(connection)


def _drip(connection: socket.socket, seen: Seen) -> None:
    tcp.drip(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b" " * 900, 0.1)


def _reset(connection: socket.socket, seen: Seen) -> bool:
    tcp.reset(connection)
    return False


def _half(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n[{"id": 1')
    return False


def _huge(connection: socket.socket, seen: Seen) -> bool:
    respond(connection, 200, b"[" + b" " * 10_000_000 + b"]")
    return False


def _say(status: int, body: bytes, **headers: str) -> Answer:
    def answer(connection: socket.socket, seen: Seen) -> None:
        respond(connection, status, body, headers)

    return answer


_PAGE = b"<!DOCTYPE html><html><body>We will be back soon</body></html>"

BREAKS: dict[str, tuple[Any, type[PlatformError], type[PlatformError]]] = {
    "hangs": (_stall, PlatformSlow, PlatformSlow),
    "drips": (_drip, PlatformSlow, PlatformSlow),
    "resets": (_reset, PlatformAway, PlatformSlow),
    "half a body": (_half, PlatformAway, PlatformSlow),
    "ten megabytes": (_huge, PlatformAway, PlatformSlow),
    "html": (_say(200, _PAGE), PlatformAway, PlatformSlow),
    "html of a gateway": (_say(502, _PAGE), PlatformAway, PlatformSlow),
    "nothing": (_say(200, b""), PlatformAway, PlatformSlow),
    "redirect": (_say(302, b"", Location="http://169.254.169.254/"), PlatformAway, PlatformSlow),
    "deep json": (_say(200, b"[" * 3000 + b"]" * 3000), PlatformAway, PlatformSlow),
}
"""By name: what it answers, and the errors of a read and of a create."""
ENDLESS = frozenset({"hangs", "drips"})


def seconds_for(name: str) -> float:
    """Return the time of a call: short where it is used up, and long where an answer comes first,
    on however busy a machine.
    """
    return 1.0 if name in ENDLESS else 8.0
