"""A blocking connection to an address that was checked, for SMPP."""

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any

import certifi

from rme.transport.addresses import AddressPolicy
from rme.transport.messages import TIME_OUT, Failure, FailureKind

_Addresses = Sequence[tuple[Any, ...]]


class ConnectionFailed(Exception):
    """No connection was made; `failure` has the reason."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.failure = Failure(kind, reason)


def connect(
    policy: AddressPolicy, host: str, port: int, *, tls: bool, ca_pem: str = "", timeout: float
) -> socket.socket:
    """Connect within some seconds; without TLS only to hosts that the deployment opens.

    The socket connects to the very address that was checked. Raises ConnectionFailed.
    """
    until = time.monotonic() + timeout
    is_open = policy.opens(host, port)
    if not tls and not is_open:
        raise ConnectionFailed(FailureKind.REFUSED_ADDRESS, "a log-in would go in clear")
    resolved = _resolve(host, port, timeout)
    allowed = [address for address in resolved if is_open or policy.allows(address[4][0], port)]
    if resolved and not allowed:
        raise ConnectionFailed(FailureKind.REFUSED_ADDRESS, "the address is not public")
    connection = _reach(allowed, until)
    try:
        return _secure(connection, host, ca_pem, until) if tls else connection
    except BaseException:
        connection.close()
        raise


def _resolve(host: str, port: int, timeout: float) -> _Addresses:
    """Resolve a name in a thread, because getaddrinfo has no time-out."""
    answers: list[_Addresses] = []

    def look_up() -> None:
        try:
            answers.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError):
            answers.append([])

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(timeout)
    if not answers or not answers[0]:
        raise ConnectionFailed(FailureKind.NOT_SENT, "the host's name does not resolve")
    return answers[0]


def _reach(addresses: _Addresses, until: float) -> socket.socket:
    """Connect to the first address that accepts; each has a share of the time that is left."""
    reason = "no connection"
    for place, (family, kind, protocol, _, address) in enumerate(addresses):
        share = (until - time.monotonic()) / (len(addresses) - place)
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(max(share, 0.001))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            reason = TIME_OUT if isinstance(error, TimeoutError) else "no connection"
            connection.close()
    raise ConnectionFailed(FailureKind.NOT_SENT, reason)


def _secure(connection: socket.socket, host: str, ca_pem: str, until: float) -> socket.socket:
    try:
        context = ssl.create_default_context(
            cadata=ca_pem or None, cafile=None if ca_pem else certifi.where()
        )
    except (ssl.SSLError, ValueError) as error:
        reason = "the certificates to trust cannot be read"
        raise ConnectionFailed(FailureKind.TLS, reason) from error
    connection.settimeout(max(until - time.monotonic(), 0.001))
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        reason = "the certificate is not to be trusted"
        raise ConnectionFailed(FailureKind.TLS, reason) from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as error:
        raise ConnectionFailed(FailureKind.NOT_SENT, "the connection was lost") from error
    except TimeoutError as error:
        raise ConnectionFailed(FailureKind.NOT_SENT, TIME_OUT) from error
    except ssl.SSLError as error:
        raise ConnectionFailed(FailureKind.TLS, "the TLS handshake failed") from error
    except OSError as error:
        raise ConnectionFailed(FailureKind.NOT_SENT, "the connection was lost") from error
