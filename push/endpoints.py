"""Which Web Push endpoints may be called: an endpoint is a URL that an untrusted caller gives us.

It is checked when a device registers and again when a push is sent.
"""

import re

from django.conf import settings

from rme.transport import AddressPolicy, origin_of

_URL = re.compile(r'[!"$-\[\]-~]{1,2000}')
"""Visible ASCII without `#` and the backslash, which no browser's endpoint has."""


def url_error(endpoint: str, policy: AddressPolicy) -> str:
    """Return why an endpoint may not be called; an empty text if it may.

    It must be https at port 443 of a known push service or a subdomain of it, or at a host that the
    deployment has opened. The host is the one that the transport will call, not one that a pattern
    finds in the URL; and it must be written as browsers write it, without a trailing dot.
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
