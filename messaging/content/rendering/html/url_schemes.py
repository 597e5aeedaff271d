"""URL schemes that a variable may put into HTML or into a push.

A variable at the beginning of a URL decides its scheme, and `javascript:` runs where it is shown,
be it a mail client or the preview of the admin. So a variable may have one of the schemes below, or
none. Any other scheme must be part of the template itself (`href="myapp://{{ id }}"`).
"""

import re

SCHEMES = frozenset({"cid", "http", "https", "mailto", "sms", "tel", "webcal"})
ACTIVE = frozenset({"data", "javascript", "vbscript"})
"""Schemes that run code. Not allowed in a push either, where an application has its own schemes."""

REPLACEMENT = "#"

# Characters that browsers remove before they read a scheme (https://url.spec.whatwg.org/#url-parsing).
_IGNORED = re.compile(r"[\x00-\x20]+")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)(:?)", re.IGNORECASE)


def scheme(url: str) -> str:
    """Return the scheme of a URL in lower case, or an empty text.

    A bare `javascript` counts: the colon may come from the template or the next variable.
    """
    match = _SCHEME.match(_IGNORED.sub("", url[:2000]))
    if not match:
        return ""
    name = match[1].lower()
    return name if match[2] or name in ACTIVE else ""


def safe_url(url: str) -> str:
    """Return a URL from a variable, or `#` if its scheme is not allowed."""
    if url.startswith("https://"):
        return url
    url_scheme = scheme(url)
    return REPLACEMENT if url_scheme and url_scheme not in SCHEMES else url
