"""Requests to other services: HTTP/1.1 (by libcurl), HTTP/2, SMTP and SMPP. Without Django.

`Transport.perform` takes requests and returns, in the same order, a `Reply` for each that was
answered and a `Failure` for each that was not. A failure says whether the other side may have
received the request (UNKNOWN) or cannot have (NOT_SENT): this is why nothing is sent twice.

README.md describes the package. Other packages import from here, and `smpp` (SMS by SMPP), `gsm`
(the alphabet of SMS), `addresses` (origins of URLs), `messages` and `performer` (the transport, for
those who build requests).
"""

from rme.transport.addresses import AddressPolicy, Origin, origin_of
from rme.transport.client import Transport
from rme.transport.concurrent_jobs import run_concurrently
from rme.transport.in_flight import RequestsInFlight
from rme.transport.messages import (
    NOT_STARTED,
    TIME_OUT,
    CommonHeaders,
    Envelope,
    Failure,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    OnResults,
    Reply,
    Request,
    Result,
    Stage,
)
from rme.transport.per_thread import thread_transport

__all__ = [
    "NOT_STARTED",
    "TIME_OUT",
    "AddressPolicy",
    "CommonHeaders",
    "Envelope",
    "Failure",
    "FailureKind",
    "InvalidRequest",
    "MailSecurity",
    "OnResults",
    "Origin",
    "Reply",
    "Request",
    "RequestsInFlight",
    "Result",
    "Stage",
    "Transport",
    "origin_of",
    "run_concurrently",
    "thread_transport",
]
