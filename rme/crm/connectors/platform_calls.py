"""HTTP calls to a platform: over the checked transport, within the deadline, with one retry.

A read is retried once, unless it failed by a time-out. A create is never retried: if it may have
been carried out, the error is PlatformSlow.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from rme.core import exact_json
from rme.crm.connectors.base import (
    Deadline,
    PlatformAway,
    PlatformError,
    PlatformLimit,
    PlatformSlow,
)
from rme.crm.connectors.circuit import Circuit
from rme.transport.messages import TIME_OUT, Failure, FailureKind, Reply, Request
from rme.transport.performer import Performer

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0
MAX_RESPONSE = 4 * 1024 * 1024
"""Bytes. Descriptions of large objects come near it; records do not."""

_GATEWAY_ERRORS = frozenset({502, 503, 504})
_MAX_RETRY_AFTER = 3600


@dataclass(frozen=True, slots=True)
class _Call:
    """What one call sends. `creates`: it creates a record, so it must not be repeated."""

    url: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    creates: bool


class PlatformCaller:
    """Makes the calls of one connector; `deadline` bounds them together.

    Without a circuit, the failures of earlier calls do not count.
    """

    def __init__(
        self, transport: Performer, ca_pem: str = "", circuit: Circuit | None = None
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
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        creates: bool = False,
    ) -> Reply:
        """Return the response, whatever its status. Raise PlatformSlow or PlatformAway."""
        self.deadline.require()
        self.circuit.enter()
        start = time.monotonic()
        try:
            result = self._perform(_Call(url, method, tuple(headers), body, creates))
        except BaseException:
            # The platform was not called, or this worker is being stopped: not its failure.
            self.circuit.leave(0.0, PlatformError)
            raise
        seconds = time.monotonic() - start
        if isinstance(result, Reply):
            self.circuit.leave(seconds, None)
            return result
        error = _error_of(result, creates)
        self.circuit.leave(seconds, error)
        raise error

    def _perform(self, call: _Call) -> Reply | Failure:
        result = self._perform_once(call)
        if call.creates or not _may_repeat(result) or self.deadline.left <= 0.0:
            return result
        return self._perform_once(call)

    def _perform_once(self, call: _Call) -> Reply | Failure:
        seconds_left = self.deadline.left
        request = Request(
            call.url,
            call.body,
            call.method,
            call.headers,
            connect_timeout=min(CONNECT_SECONDS, seconds_left),
            timeout=min(READ_SECONDS, seconds_left),
            max_response=MAX_RESPONSE,
            ca_pem=self.ca_pem,
        )
        return self.transport.perform([request])[0]


def _error_of(failure: Failure, creates: bool) -> type[PlatformError]:
    unknown = failure.kind is FailureKind.UNKNOWN and (creates or _timed_out(failure))
    return PlatformSlow if unknown else PlatformAway


def _timed_out(failure: Failure) -> bool:
    return failure.reason == TIME_OUT


def _may_repeat(result: Reply | Failure) -> bool:
    if isinstance(result, Reply):
        return result.status in _GATEWAY_ERRORS
    if result.kind is FailureKind.UNKNOWN:
        return not _timed_out(result)
    return result.kind is FailureKind.NOT_SENT


def json_of(reply: Reply, *, creates: bool = False) -> object:
    """Return the JSON value of a response. Whole numbers of more than 64 bits are texts.

    Raise PlatformAway if it is not JSON; for a create raise PlatformSlow, since a gateway may have
    replaced the platform's response.
    """
    try:
        value = exact_json.loads(reply.body)
    except orjson.JSONDecodeError as error:
        raise (PlatformSlow if creates else PlatformAway) from error
    return value


def limit_of(reply: Reply) -> PlatformLimit:
    """Return the error for a used-up quota, with the response's Retry-After in seconds or 60."""
    header = reply.headers.get("retry-after", "")[:9]
    seconds = int(header) if header.isascii() and header.isdigit() else 60
    return PlatformLimit(max(1, min(seconds, _MAX_RETRY_AFTER)))
