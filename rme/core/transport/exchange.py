"""One exchange: a request on a libcurl easy handle, and what its end means."""

import socket
from typing import Any
from urllib.parse import urlsplit

import certifi
import pycurl

from rme.core.transport.addresses import AddressPolicy
from rme.core.transport.messages import (
    Failure,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    Reply,
    Request,
)

_HTTP = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_MAIL = pycurl.PROTO_SMTP | pycurl.PROTO_SMTPS
_DEFAULT_PORTS = {"http": 80, "https": 443, "smtp": 25, "smtps": 465}

_TLS_ERRORS = {
    pycurl.E_SSL_CONNECT_ERROR: "the TLS handshake failed",
    pycurl.E_PEER_FAILED_VERIFICATION: "the certificate is not to be trusted",
    pycurl.E_USE_SSL_FAILED: "the server does not offer STARTTLS",
}
_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "the host's name does not resolve",
    pycurl.E_COULDNT_CONNECT: "no connection",
    pycurl.E_OPERATION_TIMEDOUT: "time-out",
    pycurl.E_GOT_NOTHING: "the connection was closed without an answer",
    pycurl.E_RECV_ERROR: "the connection was lost",
    pycurl.E_SEND_ERROR: "the connection was lost",
    pycurl.E_SEND_FAIL_REWIND: "the connection was lost",
    pycurl.E_PARTIAL_FILE: "half an answer",
    pycurl.E_WRITE_ERROR: "the answer is too long",
    pycurl.E_FTP_WEIRD_SERVER_REPLY: "the answer makes no sense",
    pycurl.E_REMOTE_ACCESS_DENIED: "the server turned us away",
}


class Exchange:
    """A request on its way. Made, handed to a multi handle, and asked for its result once."""

    def __init__(self, curl: pycurl.Curl, request: Request, policy: AddressPolicy) -> None:
        self.curl = curl
        self.request = request
        self.policy = policy
        self.sent = 0
        self.body = bytearray()
        self.headers: dict[str, str] = {}
        self.lines: list[str] = []
        self.refused = False
        parts = urlsplit(request.url)
        self.scheme, self.host = parts.scheme, parts.hostname or ""
        self.port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        self.opened = policy.opens(self.host, self.port)
        self._configure()

    @property
    def may_leave(self) -> bool:
        """Say whether the scheme is one that may be used: in clear only to opened hosts."""
        return self.scheme in ("https", "smtp", "smtps") or (self.scheme == "http" and self.opened)

    def _configure(self) -> None:
        curl, request = self.curl, self.request
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROXY, "")  # never by way of http_proxy and its like
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, _MAIL if request.envelope else _HTTP)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(request.connect_timeout * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, int(request.timeout * 1000))
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.WRITEFUNCTION, self._take)
        curl.setopt(pycurl.HEADERFUNCTION, self._take_line)
        if request.ca_pem:
            curl.setopt(pycurl.CAINFO_BLOB, request.ca_pem.encode())
        else:
            curl.setopt(pycurl.CAINFO, certifi.where())
        if request.envelope:
            self._configure_mail()
        else:
            self._configure_http()

    def _configure_mail(self) -> None:
        envelope = self.request.envelope
        assert envelope is not None  # the caller looked
        curl = self.curl
        curl.setopt(pycurl.MAIL_FROM, envelope.mail_from)
        curl.setopt(pycurl.MAIL_RCPT, list(envelope.recipients))
        curl.setopt(pycurl.UPLOAD, 1)
        curl.setopt(pycurl.INFILESIZE, len(self.request.body))
        curl.setopt(pycurl.READFUNCTION, self._give)
        if envelope.security is MailSecurity.STARTTLS:
            curl.setopt(pycurl.USE_SSL, pycurl.USESSL_ALL)  # never downgraded
        if envelope.username:
            curl.setopt(pycurl.USERNAME, envelope.username)
            curl.setopt(pycurl.PASSWORD, envelope.password)

    def _configure_http(self) -> None:
        curl, request = self.curl, self.request
        version = pycurl.CURL_HTTP_VERSION_2TLS if request.http2 else pycurl.CURL_HTTP_VERSION_1_1
        curl.setopt(pycurl.HTTP_VERSION, version)
        if request.http2:
            curl.setopt(pycurl.PIPEWAIT, 1)  # wait to share a connection rather than open another
        curl.setopt(pycurl.HTTPHEADER, [f"{n}: {v}" for n, v in request.headers] + ["Expect:"])
        if request.method == "GET":
            curl.setopt(pycurl.HTTPGET, 1)
            return
        # Without a way to rewind, libcurl cannot send a body again by itself when a kept
        # connection turns out to be dead: it may have been taken already.
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        curl.setopt(pycurl.POSTFIELDSIZE, len(request.body))
        curl.setopt(pycurl.READFUNCTION, self._give)

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """Open the socket that is about to connect, if its address may be called."""
        family, kind, protocol, where = address
        if not self.opened and not self.policy.allows(where[0]):
            self.refused = True
            return pycurl.SOCKET_BAD
        return socket.socket(family, kind, protocol)

    def _give(self, size: int) -> bytes:
        part = self.request.body[self.sent : self.sent + size]
        self.sent += len(part)
        return part

    def _take(self, part: bytes) -> int | None:
        if len(self.body) + len(part) > self.request.max_response:
            return 0  # fewer than were given: libcurl ends the exchange with E_WRITE_ERROR
        self.body += part
        return None

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if self.request.envelope:
            if len(self.lines) < 200:
                self.lines.append(text[:512])
            return
        name, colon, value = text.partition(":")
        if colon and len(self.headers) < 100:
            self.headers[name.strip().lower()] = value.strip()

    def reply(self) -> Reply:
        """Give the answer of an exchange that ended well."""
        return Reply(
            status=self.curl.getinfo(pycurl.RESPONSE_CODE),
            headers=self.headers,
            body=bytes(self.body),
            lines=tuple(self.lines),
            elapsed=self.curl.getinfo(pycurl.TOTAL_TIME),
        )

    def failure(self, code: int) -> Reply | Failure:
        """Say what an exchange that ended with one of libcurl's errors means."""
        if self.refused:
            return Failure(FailureKind.REFUSED_ADDRESS, "the address is not public")
        status = self.curl.getinfo(pycurl.RESPONSE_CODE)
        lines = tuple(self.lines)
        lost = self._lost(code)
        if self.request.envelope and status >= 400 and not lost:
            kind = FailureKind.LOGIN if code == pycurl.E_LOGIN_DENIED else None
            if kind is None:
                return Reply(status=status, lines=lines)
            return Failure(kind, "the log-in was refused", status, lines)
        if code in _TLS_ERRORS:
            return Failure(FailureKind.TLS, _TLS_ERRORS[code], status, lines)
        if code == pycurl.E_LOGIN_DENIED:
            return Failure(FailureKind.LOGIN, "the log-in was refused", status, lines)
        reason = _REASONS.get(code, f"transport error {code}")
        return Failure(self._kind(), reason, status, lines)

    def _lost(self, code: int) -> bool:
        """Say whether the connection ended, so that the last reply is not the answer."""
        return code in (
            pycurl.E_OPERATION_TIMEDOUT,
            pycurl.E_RECV_ERROR,
            pycurl.E_GOT_NOTHING,
        )

    def _kind(self) -> FailureKind:
        """Tell UNKNOWN from NOT_SENT: without its last byte nobody can have taken the request."""
        if self.request.envelope or self.request.body:
            whole = self.sent >= len(self.request.body)
        else:
            whole = self.curl.getinfo(pycurl.REQUEST_SIZE) > 0
        return FailureKind.UNKNOWN if whole else FailureKind.NOT_SENT


def check(request: Request, policy: AddressPolicy) -> None:
    """Refuse a request whose URL is none. Raises InvalidRequest."""
    parts = urlsplit(request.url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    schemes = ("smtp", "smtps") if request.envelope else ("http", "https")
    if parts.scheme not in schemes or not parts.hostname or port == -1:
        raise InvalidRequest(f"not a {schemes[-1]} address")
