"""Addresses that a variable may put into HTML or into a push.

A variable that begins an address decides its scheme, and `javascript:` runs where it is shown, be
it a mail client or the preview in the admin. So a variable may bring the schemes below or none.
Any other stands in the template itself (`href="myapp://{{ id }}"`): its author answers for it.
"""

import re

SCHEMES = frozenset({"cid", "http", "https", "mailto", "sms", "tel", "webcal"})
ACTIVE = frozenset({"data", "javascript", "vbscript"})
"""What runs. Never in a push either, where an application's own schemes are usual."""

REPLACEMENT = "#"

# What browsers leave out before they read a scheme (https://url.spec.whatwg.org/#url-parsing).
_IGNORED = re.compile(r"[\x00-\x20]+")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)(:?)", re.IGNORECASE)


def scheme(address: str) -> str:
    """Give the scheme an address begins with, in lower case; an empty text without one.

    A bare `javascript` counts: the template, or the next variable, may bring the colon.
    """
    found = _SCHEME.match(_IGNORED.sub("", address[:2000]))
    if not found:
        return ""
    name = found[1].lower()
    return name if found[2] or name in ACTIVE else ""


def harmless(address: str) -> str:
    """Give an address that a variable brought, or `#` if its scheme is not allowed."""
    if address.startswith("https://"):
        return address
    named = scheme(address)
    return REPLACEMENT if named and named not in SCHEMES else address
