"""`DATABASE_URL`: one server, or several, one of them accepting writes.

`postgres://user:password@a:5432,b:5432/name`: libpq's own form, which `urlsplit` does not read:
newer versions of it refuse an address in brackets after another host.
"""

import re
from typing import Any
from urllib.parse import unquote

import dj_database_url

_AUTHORITY = re.compile(r"[^:/?#]++://([^/?#]*+)")
PRIMARY_ONLY = "read-write"
"""libpq's target_session_attrs: a host that accepts no writes counts as one that is away."""


def parse(url: str) -> dict[str, Any]:
    """Return Django's settings of the database.

    With several hosts a connection is made to the first that accepts writes, unless the URL has
    another `target_session_attrs`. Raises ValueError for an invalid URL, without quoting it.
    """
    found_authority = _AUTHORITY.match(url)
    authority = found_authority[1] if found_authority else ""
    user, at, hosts = authority.rpartition("@")
    if "," not in hosts:
        return {**dj_database_url.parse(url)}
    servers = [_host_and_port(host) for host in hosts.split(",")]
    single_url = url.replace(authority, f"{user}{at}localhost", 1)
    parsed: dict[str, Any] = {**dj_database_url.parse(single_url)}
    parsed["HOST"] = ",".join(host for host, _ in servers)
    parsed["PORT"] = ",".join(port for _, port in servers)
    parsed["OPTIONS"] = {"target_session_attrs": PRIMARY_ONLY, **parsed.get("OPTIONS", {})}
    return parsed


def _host_and_port(text: str) -> tuple[str, str]:
    """Return a host and its port; `[::1]:5432` is an IPv6 address."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, "5432"
    if not host or not port.isdecimal():
        raise ValueError("DATABASE_URL has a host without a name, or a port that is no number.")
    return unquote(host.removeprefix("[").removesuffix("]")), port
