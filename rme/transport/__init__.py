"""The ONE way out of the house: many requests at once, by HTTP/1.1 (libcurl's), HTTP/2 and SMTP.

`Transport.perform` takes requests and gives, in the same order, a `Reply` for each that was
answered and a `Failure` for each that was not. A failure says whether the other side may have
taken the request (UNKNOWN) or cannot have (NOT_SENT): on that rests that nothing is sent twice.
"""

from rme.transport.addresses import AddressPolicy
from rme.transport.client import Transport
from rme.transport.concurrent_jobs import run_concurrently
from rme.transport.messages import (
    NOT_STARTED,
    CommonHeaders,
    Envelope,
    Failure,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    Reply,
    Request,
    Stage,
)
from rme.transport.per_thread import thread_transport
from rme.transport.scheduler import OnResults, Result

__all__ = [
    "NOT_STARTED",
    "AddressPolicy",
    "CommonHeaders",
    "Envelope",
    "Failure",
    "FailureKind",
    "InvalidRequest",
    "MailSecurity",
    "OnResults",
    "Reply",
    "Request",
    "Result",
    "Stage",
    "Transport",
    "run_concurrently",
    "thread_transport",
]
