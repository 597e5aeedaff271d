"""Which Web Push endpoints may be called: an endpoint is a URL that an untrusted caller gives us.

It is checked when a device registers and again when a push is sent.
"""

import re

from django.conf import settings

from rme.transport.addresses import AddressPolicy, origin_of

_URL = re.compile(r'[!"$-\[\]-~]{1,2000}')
"""Visible ASCII without `#` and the backslash, which no browser's endpoint has."""


def url_error(endpoint: str, policy: AddressPolicy) -> str:
    """Return why an endpoint may not be called; an empty text if it may.

    It must be https at port 443 of a known push service or a subdomain of it, or at a host that the
    deployment has opened. The host is the one that the transport will call, not one that a pattern
    finds in the URL; and it must be written as browsers write it, without a trailing dot.
    """
    origin = origin_of(endpoint) if _URL.fullmatch(endpoint) else None
    if origin is None or origin.scheme != "https":
        return "must be an https address"
    if policy.opens(origin.host, origin.port):
        return ""
    if origin.port != 443:
        return "must be on port 443"
    authority = endpoint.split("/", 3)[2].lower().removesuffix(":443")
    plain = authority == origin.host and all(origin.host.split("."))
    push_hosts = settings.WEB_PUSH_HOSTS
    if plain and any(
        origin.host == host or origin.host.endswith(f".{host}") for host in push_hosts
    ):
        return ""
    return "is not of a push service that is known here"
