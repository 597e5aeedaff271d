"""What a proxy in front tells of a request: who sent it, and by which scheme.

WSGI has one name for `X-Forwarded-For` and `X_Forwarded_For`, and the web server shows no other: a
proxy that passes headers with underscores lets its clients write over what it says. `Forwarded`
(RFC 7239) has no hyphen, so that nothing else is taken for it.
"""

from collections.abc import Mapping, MutableMapping
from ipaddress import ip_address
from typing import Any

from django.conf import settings

FORWARDED = "forwarded"
"""The value of `TLS_PROXY` with which `Forwarded` alone is believed."""

_UNDERSCORED = ("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")
"""Names that only `Content_Length` and `Content_Type` lead to, as the proper ones have others."""
_SENT_ON = (
    *("HTTP_X_FORWARDED", "HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_ORIGINAL", "HTTP_X_REAL_IP"),
    *("HTTP_CF_", "HTTP_TRUE_CLIENT_IP", "HTTP_X_CLIENT", "HTTP_X_CLUSTER_CLIENT_IP"),
)


def settle(meta: MutableMapping[str, Any]) -> None:
    """Write the scheme of a request down where Django looks for it, and drop misnamed headers."""
    for name in _UNDERSCORED:
        meta.pop(name, None)
    if settings.TLS_PROXY:
        meta["wsgi.url_scheme"] = "https" if scheme(meta) == "https" else "http"


def is_forwarded(meta: Mapping[str, Any]) -> bool:
    """Check whether any header says that a proxy sent a request on."""
    return any(name.startswith(_SENT_ON) for name in meta)


def scheme(meta: Mapping[str, Any]) -> str:
    """Return the scheme by which the request reached our proxy, empty where it does not say."""
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return _pairs(meta).get("proto", "").lower()
    return _last(meta, "HTTP_X_FORWARDED_PROTO").lower()


def address(meta: Mapping[str, Any]) -> str:
    """Return the address that a request came from; a proxy is believed only with `TLS_PROXY`."""
    direct = str(meta.get("REMOTE_ADDR", ""))
    if not settings.TLS_PROXY:
        return direct
    if settings.TLS_PROXY_HEADER == FORWARDED:
        return _node(_pairs(meta).get("for", "")) or direct
    return _last(meta, "HTTP_X_FORWARDED_FOR")[:64] or direct


def _last(meta: Mapping[str, Any], name: str) -> str:
    """Return the last entry of a list: the nearest proxy, ours, wrote it itself."""
    return str(meta.get(name, "")).rpartition(",")[2].strip()


def _pairs(meta: Mapping[str, Any]) -> dict[str, str]:
    """Read the last element of `Forwarded`: `for=192.0.2.9;proto=https`."""
    pairs = (pair.partition("=") for pair in _last(meta, "HTTP_FORWARDED").split(";"))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _node(text: str) -> str:
    """Read an address with or without a port; empty for a name that hides one (RFC 7239 §6)."""
    bare = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ip_address(bare))
    except ValueError:
        return ""
