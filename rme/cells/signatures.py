"""Authentication of the calls between cells, and of those of the router to them.

A call carries `Authorization: Cell TIME.MAC`: the seconds since 1970, and an HMAC-SHA256 by
`CELL_SECRET` of its purpose, the time and what is signed. The secret itself is never sent. A cell
accepts a signature for `VALID_SECONDS`. `CELL_SECRET` may be several, between commas, while it is
replaced: the first signs, and all are accepted. Imports no Django: the router signs too.
"""

import hmac
import time

SCHEME = "Cell"
CELL_HEADER = "RME-Cell"
"""The header of a 421 that names the cell to which the organization has moved."""
PAUSED_HEADER = "RME-Paused"
"""The header of a 503 that ends within seconds: nothing was stored, as the organization moves."""
PATH = "/cell/"
"""Below it are the calls between cells. The router passes none of them on."""
OWNER = f"{PATH}owner"
"""The call that asks a cell whether an organization or a person is its own."""
CELL_COOKIE = "rme_cell"
"""The cookie by which a browser stays at a cell. It proves nothing."""
CELL_COOKIE_SECONDS = 365 * 86_400
SESSION_COOKIE = "sessionid_"
"""The beginning of the name of a cell's session cookie; the cell's name is the rest."""
VALID_SECONDS = 30


def sign(secret: str, purpose: str, signed: bytes, now: float | None = None) -> str:
    """Return the value of the `Authorization` header for what is signed."""
    instant = str(int(time.time() if now is None else now))
    first = secret.partition(",")[0]
    return f"{SCHEME} {instant}.{_mac(first, purpose, instant, signed)}"


def is_signed(
    secret: str, purpose: str, signed: bytes, header: str, now: float | None = None
) -> bool:
    """Return whether a header is a valid signature; compared in constant time."""
    scheme, _, proof = header.partition(" ")
    instant, _, signature = proof.strip().partition(".")
    if not secret or scheme != SCHEME or not instant.isascii() or not instant.isdecimal():
        return False
    # The length first: a number of a thousand digits takes long to read.
    if len(instant) > 12 or not signature.isascii():
        return False
    macs = [_mac(each, purpose, instant, signed) for each in secret.split(",")]
    if not any(hmac.compare_digest(signature, mac) for mac in macs):
        return False
    return abs((time.time() if now is None else now) - int(instant)) <= VALID_SECONDS


def call_purpose(method: str, path: str) -> str:
    """Return the purpose of an HTTP call: a signature serves this method and path alone."""
    return f"{method} {path}"


def _mac(secret: str, purpose: str, instant: str, signed: bytes) -> str:
    # No part can be read as another: purposes and times contain no line feed.
    text = b"\n".join([purpose.encode(), instant.encode(), signed])
    return hmac.digest(secret.encode(), text, "sha256").hex()
