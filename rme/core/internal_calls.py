"""Authentication of calls between cells and the router, by the secret that they share.

A call has a header with its time, and an HMAC of time, method, path with query, and body. So a
header that was seen serves for no other call, and for the same one for a minute. It needs no
Django: the router uses it too.
"""

import hashlib
import hmac

HEADER = "RME-Cell-Auth"
VALID_SECONDS = 60.0
"""How far the clocks of two machines may differ."""


def sign(secret: str, method: str, path: str, body: bytes, *, now: float) -> str:
    """Return the header of a call at a Unix time; `path` has the query."""
    at = int(now)
    return f"t={at},v1={_mac(secret, at, method, path, body)}"


def is_valid(header: str, secret: str, method: str, path: str, body: bytes, *, now: float) -> bool:
    """Return whether a header belongs to a call, and is of about now. Without a secret none is."""
    fields = dict(part.partition("=")[::2] for part in header.split(","))
    given, at = fields.get("v1", ""), fields.get("t", "")
    if not secret or not at.isascii() or not at.isdigit() or len(at) > 12:
        return False
    mac = _mac(secret, int(at), method, path, body)
    same = hmac.compare_digest(given.encode("utf-8", "replace"), mac.encode())
    return same and abs(now - int(at)) <= VALID_SECONDS


def _mac(secret: str, at: int, method: str, path: str, body: bytes) -> str:
    digest = hashlib.sha256(body).hexdigest()
    text = f"{at}\n{method}\n{path}\n{digest}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
