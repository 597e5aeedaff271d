"""Which Web Push endpoints may be called: an endpoint is an address that strangers make us call.

Looked at when a device registers and again when something is sent.
"""

import re

from django.conf import settings

from rme.transport import AddressPolicy, origin_of

_URL = re.compile(r'[!"$-\[\]-~]{1,2000}')
"""Visible ASCII without `#` and the backslash, which no browser's endpoint has."""


def refusal(endpoint: str, policy: AddressPolicy) -> str:
    """Say why an endpoint may not be called; an empty text: it may.

    It is https, port 443, at one of the known push services or below it; or at a host that the
    deployment has opened. The host is the one that the transport will call, never a guess by a
    pattern over the URL; and it is written as browsers write it, without a dot at its end.
    """
    where = origin_of(endpoint) if _URL.fullmatch(endpoint) else None
    if where is None or where.scheme != "https":
        return "must be an https address"
    if policy.opens(where.host, where.port):
        return ""
    if where.port != 443:
        return "must be on port 443"
    written = endpoint.split("/", 3)[2].lower().removesuffix(":443")
    plain = written == where.host and all(where.host.split("."))
    known = settings.WEB_PUSH_HOSTS
    if plain and any(where.host == host or where.host.endswith(f".{host}") for host in known):
        return ""
    return "is not of a push service that is known here"
