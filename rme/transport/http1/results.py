"""The result of an HTTP exchange: a reply, certainly not sent, or unknown."""

from collections.abc import Iterable

import pycurl

from rme.transport.http1.exchange import Exchange
from rme.transport.messages import TIME_OUT, Failure, FailureKind, Reply

REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "the host's name does not resolve",
    pycurl.E_COULDNT_CONNECT: "no connection",
    pycurl.E_OPERATION_TIMEDOUT: TIME_OUT,
    pycurl.E_ABORTED_BY_CALLBACK: "the connection was lost before an answer",
    pycurl.E_GOT_NOTHING: "the connection was closed without an answer",
    pycurl.E_RECV_ERROR: "the connection was lost",
    pycurl.E_SEND_ERROR: "the connection was lost",
    pycurl.E_SSL_CONNECT_ERROR: "the connection was lost in the TLS handshake",
    pycurl.E_PARTIAL_FILE: "half an answer",
    pycurl.E_FILESIZE_EXCEEDED: "the answer is too long",
    pycurl.E_WRITE_ERROR: "the answer is too long",
    pycurl.E_UNSUPPORTED_PROTOCOL: "the answer is not HTTP",
}
TLS = {
    pycurl.E_SSL_CONNECT_ERROR: "the TLS handshake failed",
    pycurl.E_PEER_FAILED_VERIFICATION: "the certificate is not to be trusted",
    pycurl.E_SSL_CACERT_BADFILE: "the certificates to trust cannot be read",
}


def result_of(exchange: Exchange, code: int) -> Reply | Failure:
    """Return the result of an exchange. `code` is libcurl's (CURLE_…), 0 for success."""
    status: int = exchange.curl.getinfo(pycurl.RESPONSE_CODE)
    headers = _headers(exchange.header_lines)
    if code == 0 and headers is None:  # libcurl accepts an end within the headers
        return Failure(FailureKind.UNKNOWN, "half an answer", status)
    if code == 0 and headers is not None:
        return Reply(
            status,
            headers=headers,
            body=b"".join(exchange.chunks),
            elapsed=exchange.curl.getinfo(pycurl.TOTAL_TIME),
        )
    if exchange.started == 0:
        return _never_started(exchange, code)
    return Failure(FailureKind.UNKNOWN, _reason(code), status)


def _reason(code: int) -> str:
    return REASONS.get(code, f"transport error {code}")


def _never_started(exchange: Exchange, code: int) -> Failure:
    """Return the failure of an exchange that wrote nothing of its request."""
    if exchange.stale:
        return Failure(FailureKind.NOT_SENT, "the kept connection had been closed")
    if exchange.refused:
        return Failure(FailureKind.REFUSED_ADDRESS, "the address is not public")
    if code == pycurl.E_URL_MALFORMAT:
        return Failure(FailureKind.REFUSED_ADDRESS, "not an address to call")
    if code in TLS and not _broken_off(exchange, code):
        return Failure(FailureKind.TLS, TLS[code])
    return Failure(FailureKind.NOT_SENT, _reason(code))


def _broken_off(exchange: Exchange, code: int) -> bool:
    """Return whether the connection was lost in the handshake, and not refused by either side.

    libcurl has one code for both; its text contains OpenSSL's error only for a refusal.
    """
    text: str = exchange.curl.errstr()
    return code == pycurl.E_SSL_CONNECT_ERROR and ("error:" not in text or "unexpected eof" in text)


def _headers(header_lines: Iterable[bytes]) -> dict[str, str] | None:
    """Parse the headers of the last response, which interim ones (1xx) may precede.

    Returns None if their end is missing.
    """
    headers: dict[str, str] = {}
    complete = False
    for line in b"".join(header_lines).decode("latin-1").split("\n")[:-1]:  # each ends with one
        name, colon, value = line.partition(":")
        if line.startswith("HTTP/"):
            headers.clear()
            complete = False
        elif colon:
            headers[name.lower()] = value.strip()
        else:
            complete = complete or not name.strip()
    return headers if complete else None
