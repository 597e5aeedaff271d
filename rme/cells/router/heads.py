"""The head of a request, and the headers that go to a cell and come back."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

from rme.cells import signatures
from rme.cells.router.environment import FORWARDED, Settings
from rme.cells.signatures import PAUSED_HEADER
from rme.core.http import forwarded

RawHeaders = list[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"te"),
        *(b"trailer", b"upgrade", b"proxy-authenticate", b"proxy-authorization", b"http2-settings"),
    }
)
"""Headers of one connection alone (RFC 9110 §7.6.1)."""
_NEVER_FORWARDED = (
    *(b"x-forwarded", b"forwarded", b"x-original", b"x-real-ip", b"cf-", b"true-client-ip"),
    *(b"x-client", b"x-cluster-client-ip", b"rme-", b"expect", b"content-length"),
)
"""Beginnings of headers by which a client could pose as another, and of those set anew."""


_NOT_FOR_CLIENTS = frozenset({b"date", b"server", PAUSED_HEADER.lower().encode()})


class BadRequestTarget(ValueError):
    """The target of a request is no path."""


@dataclass(frozen=True)
class Head:
    """A request without its body."""

    method: str
    target: str
    """The path and the query, as they came."""
    headers: RawHeaders
    """With names in lower case."""
    peer: str
    peer_scheme: str
    has_body: bool
    length: int | None
    by_name: Mapping[str, str] = field(repr=False)
    """The headers by name; of several with a name, the first."""

    @cached_property
    def path(self) -> str:
        """The decoded path, as a cell reads it."""
        raw = self.target.partition("?")[0]
        return unquote_to_bytes(raw).decode("utf-8", "replace")

    @cached_property
    def cookies(self) -> dict[str, str]:
        cookies: dict[str, str] = {}
        for pair in self.by_name.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            cookies.setdefault(name, value)
        return cookies

    def query(self, parameter: str) -> str:
        """Return the first value of a parameter of the query, or nothing."""
        for pair in self.target.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if unquote_plus(name) == parameter:
                return unquote_plus(value)
        return ""

    @property
    def bearer(self) -> str:
        """Return the bearer token, or nothing."""
        scheme, _, token = self.by_name.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def basic_name(self) -> str:
        """Return the name of HTTP Basic, or nothing."""
        scheme, _, encoded = self.by_name.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return ""
        try:
            text = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return ""
        return unquote(text.partition(":")[0].replace("+", " "))

    def client(self, settings: Settings) -> str:
        """Return the client's address; what a proxy passes on counts only with `TLS_PROXY`."""
        if settings.tls_proxy == FORWARDED:
            node = forwarded.pairs(self.by_name.get("forwarded", "")).get("for", "")
            return forwarded.node(node) or self.peer
        if settings.tls_proxy:
            entry = forwarded.last_entry(self.by_name.get("x-forwarded-for", ""))
            return forwarded.node(entry) or self.peer
        return self.peer

    def scheme(self, settings: Settings) -> str:
        """Return the scheme by which the client came; nothing where TLS is not used at all."""
        if settings.tls_proxy == FORWARDED:
            return forwarded.pairs(self.by_name.get("forwarded", "")).get("proto", "").lower()
        if settings.tls_proxy:
            return forwarded.last_entry(self.by_name.get("x-forwarded-proto", "")).lower()
        return self.peer_scheme if settings.secure else ""


def read(scope: Mapping[str, Any]) -> Head:
    """Return the head of an ASGI scope. Raise BadRequestTarget."""
    raw = scope["raw_path"].decode("latin-1")
    if not raw.startswith("/"):
        raise BadRequestTarget
    query = scope["query_string"].decode("latin-1")
    headers: RawHeaders = [(name.lower(), value) for name, value in scope["headers"]]
    by_name: dict[str, str] = {}
    for name, value in headers:
        text = value.decode("latin-1")
        key = name.decode("latin-1")
        if key == "cookie" and key in by_name:
            by_name[key] += f"; {text}"
        elif key in ("x-forwarded-for", "x-forwarded-proto", "forwarded") and key in by_name:
            by_name[key] += f",{text}"
        else:
            by_name.setdefault(key, text)
    # A chunked body has no length, whatever else the head says (RFC 9112 §6.3).
    chunked = "transfer-encoding" in by_name
    length = "" if chunked else by_name.get("content-length", "")
    return Head(
        method=scope["method"],
        target=f"{raw}?{query}" if query else raw,
        headers=headers,
        peer=(scope.get("client") or ("", 0))[0],
        peer_scheme=scope["scheme"],
        has_body=chunked or length not in ("", "0"),
        length=int(length) if length.isdecimal() else None,
        by_name=by_name,
    )


def for_cell(head: Head, settings: Settings, cell: str) -> list[tuple[str, str]]:
    """Return the headers that a cell gets: without those of the connection, and with the client.

    A cell gets the session cookie that it has set, and none of another cell.
    """
    dropped = HOP_BY_HOP | _named_by_connection(head.by_name.get("connection", ""))
    headers: list[tuple[str, str]] = []
    for name, value in head.headers:
        if name in dropped or name.startswith(_NEVER_FORWARDED) or b"_" in name:
            continue
        if name != b"cookie":
            # The client library writes UTF-8.
            headers.append((name.decode("latin-1"), value.decode("utf-8", "replace")))
    if "cookie" in head.by_name and (cookies := _own_cookies(head.by_name["cookie"], cell)):
        headers.append(("cookie", cookies))
    client, scheme = head.client(settings), head.scheme(settings)
    node = f'"[{client}]"' if ":" in client else client
    headers.append(("x-forwarded-for", client))
    parts = [f"for={node}"]
    if scheme:
        headers.append(("x-forwarded-proto", scheme))
        parts.append(f"proto={scheme}")
    headers.append(("forwarded", ";".join(parts)))
    return headers


def for_client(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of a cell's answer without those of the connection."""
    pairs = [(raw.lower(), value) for raw, value in headers]
    dropped = HOP_BY_HOP | _NOT_FOR_CLIENTS
    for name, value in pairs:
        if name == b"connection":
            dropped |= _named_by_connection(value.decode("latin-1"))
    return [(name, value) for name, value in pairs if name not in dropped]


def _named_by_connection(value: str) -> set[bytes]:
    return {each.strip().lower().encode("latin-1") for each in value.split(",") if each.strip()}


def _own_cookies(header: str, cell: str) -> str:
    pairs = (each.strip() for each in header.split(";"))
    session_prefix = f"{signatures.SESSION_COOKIE}{cell}="
    return "; ".join(
        each
        for each in pairs
        if each
        and (not each.startswith(signatures.SESSION_COOKIE) or each.startswith(session_prefix))
    )
