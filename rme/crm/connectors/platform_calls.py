"""One call to a platform: over the checked transport, within the deadline, with one more try.

A read is repeated, once, where its answer failed to come for another reason than time. A create
never is: where it may have been carried out, the error is PlatformSlow.
"""

import time
from typing import Any

import orjson

from rme.crm.connectors.base import (
    Deadline,
    PlatformAway,
    PlatformError,
    PlatformLimit,
    PlatformSlow,
)
from rme.crm.connectors.circuit import Circuit
from rme.transport import TIME_OUT, Failure, FailureKind, Reply, Request, Transport

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0
MAX_ANSWER = 4 * 1024 * 1024
"""Bytes. The descriptions of large objects come near it; records never do."""

_GATEWAY = frozenset({502, 503, 504})
_MAX_WAIT = 3600


class PlatformCaller:
    """Makes the calls of one connector. `deadline` bounds them together. Without a circuit what
    came of others' calls does not count.
    """

    def __init__(
        self, transport: Transport, ca_pem: str = "", circuit: Circuit | None = None
    ) -> None:
        self.transport = transport
        self.ca_pem = ca_pem
        self.circuit = circuit or Circuit()
        self.deadline = Deadline()

    def call(
        self,
        url: str,
        *,
        method: str = "POST",
        headers: tuple[tuple[str, str], ...] = (),
        body: bytes = b"",
        creates: bool = False,
    ) -> Reply:
        """Give the answer, whatever its status. Raises PlatformSlow, PlatformAway."""
        self.deadline.require()
        self.circuit.enter()
        began = time.monotonic()
        try:
            result = self._perform(url, method, headers, body, creates)
        except BaseException:
            self.circuit.leave(0.0, PlatformError)  # nobody was asked, or nobody waits any more
            raise
        took = time.monotonic() - began
        if isinstance(result, Reply):
            self.circuit.leave(took, None)
            return result
        error = _error_of(result, creates)
        self.circuit.leave(took, error)
        raise error

    def _perform(
        self,
        url: str,
        method: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
        creates: bool,
    ) -> Reply | Failure:
        for last in (True,) if creates else (False, True):
            left = self.deadline.left
            request = Request(
                url,
                body,
                method,
                headers,
                connect_timeout=min(CONNECT_SECONDS, left),
                timeout=min(READ_SECONDS, left),
                max_response=MAX_ANSWER,
                ca_pem=self.ca_pem,
            )
            result = self.transport.perform([request])[0]
            if last or not _may_repeat(result) or self.deadline.left <= 0.0:
                break
        return result


def _error_of(failure: Failure, creates: bool) -> type[PlatformError]:
    in_doubt = failure.kind is FailureKind.UNKNOWN and (creates or _is_late(failure))
    return PlatformSlow if in_doubt else PlatformAway


def _is_late(failure: Failure) -> bool:
    return failure.reason == TIME_OUT


def _may_repeat(result: Reply | Failure) -> bool:
    if isinstance(result, Reply):
        return result.status in _GATEWAY
    if result.kind is FailureKind.UNKNOWN:
        return not _is_late(result)
    return result.kind is FailureKind.NOT_SENT


def json_of(reply: Reply, *, creates: bool = False) -> Any:
    """Read an answer's body. Raises PlatformAway for what is no JSON, PlatformSlow on a create:
    a gateway may have said that.
    """
    try:
        return orjson.loads(reply.body)
    except orjson.JSONDecodeError as error:
        raise (PlatformSlow if creates else PlatformAway) from error


def limit_of(reply: Reply) -> PlatformLimit:
    """Say that the quota is used up, and for how long as far as the answer says."""
    given = reply.headers.get("retry-after", "")[:9]
    seconds = int(given) if given.isascii() and given.isdigit() else 60
    return PlatformLimit(max(1, min(seconds, _MAX_WAIT)))
