"""The client address and the scheme of a request, as the proxy in front of us reports them.

WSGI has one name for `X-Forwarded-For` and `X_Forwarded_For`, and the web server shows no other: a
proxy that passes headers with underscores lets its clients overwrite the header that it sets.
`Forwarded` (RFC 7239) has no hyphen, so no other header can be taken for it.
"""

from collections.abc import Mapping, MutableMapping
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest

FORWARDED = "forwarded"
"""The value of `TLS_PROXY` with which only `Forwarded` is trusted."""

_UNDERSCORED = ("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")
"""Names of `Content_Length` and `Content_Type`; those with hyphens have no `HTTP_` prefix."""
_FORWARDING = (
    *("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_ORIGINAL", "HTTP_X_REAL_IP"),
    *("HTTP_CF_", "HTTP_TRUE_CLIENT_IP", "HTTP_X_CLIENT", "HTTP_X_CLUSTER_CLIENT_IP"),
)


def normalize(meta: MutableMapping[str, object]) -> None:
    """Store the scheme of a request where Django reads it, and drop headers with underscores."""
    for name in _UNDERSCORED:
        meta.pop(name, None)
    if settings.TLS_PROXY:
        meta["wsgi.url_scheme"] = "https" if scheme(meta) == "https" else "http"


def is_forwarded(meta: Mapping[str, object]) -> bool:
    """Return whether any header shows that a proxy forwarded the request."""
    return any(name.startswith(_FORWARDING) for name in meta)


def scheme(meta: Mapping[str, object]) -> str:
    """Return the scheme by which the request reached our proxy; "" where it sends none."""
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return _pairs(meta).get("proto", "").lower()
    return _last(meta, "HTTP_X_FORWARDED_PROTO").lower()


def address_of(request: HttpRequest) -> str:
    """Return the client's address. A proxy's headers are trusted only with `TLS_PROXY`."""
    meta = request.META
    direct = str(meta.get("REMOTE_ADDR", ""))
    if not settings.TLS_PROXY:
        return direct
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return _node(_pairs(meta).get("for", "")) or direct
    return _last(meta, "HTTP_X_FORWARDED_FOR")[:64] or direct


def _last(meta: Mapping[str, object], name: str) -> str:
    """Return the last entry of a list: the nearest proxy, ours, appended it."""
    return str(meta.get(name, "")).rpartition(",")[2].strip()


def _pairs(meta: Mapping[str, object]) -> dict[str, str]:
    """Parse the last element of `Forwarded`: `for=192.0.2.9;proto=https`."""
    pairs = (pair.partition("=") for pair in _last(meta, "HTTP_FORWARDED").split(";"))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _node(text: str) -> str:
    """Parse an address with or without a port; "" for an obfuscated name (RFC 7239 §6)."""
    bare = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ip_address(bare))
    except ValueError:
        return ""
