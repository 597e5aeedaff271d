"""What the end of an HTTP exchange means: an answer, certainly not sent, or unknown."""

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
    """Say how an exchange ended. `code` is libcurl's (CURLE_…), 0 if all went well."""
    status: int = exchange.curl.getinfo(pycurl.RESPONSE_CODE)
    headers = _headers(exchange.lines)
    if code == 0 and headers is None:  # libcurl takes an end in the midst of the headers for good
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
    """Nothing of the request was written: the connection, or its beginning, failed."""
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
    """Tell a connection lost during the handshake from a peer that cannot do what we ask.

    libcurl has one code for both; OpenSSL's own error is in the text only for the second.
    """
    said: str = exchange.curl.errstr()
    return code == pycurl.E_SSL_CONNECT_ERROR and ("error:" not in said or "unexpected eof" in said)


def _headers(lines: Iterable[bytes]) -> dict[str, str] | None:
    """Read the header lines of the last answer: an interim one (1xx) may stand before it.

    None: their end is missing.
    """
    headers: dict[str, str] = {}
    whole = False
    for line in b"".join(lines).decode("latin-1").split("\n")[:-1]:  # each ends with one
        name, colon, value = line.partition(":")
        if line.startswith("HTTP/"):
            headers.clear()
            whole = False
        elif colon:
            headers[name.lower()] = value.strip()
        else:
            whole = whole or not name.strip()
    return headers if whole else None
