"""`SMTP_URL`: the demo organization's mail server, by its address.

`smtp://user:password@host:587` (STARTTLS), `smtps://…:465` (TLS from the first byte),
`smtp+plain://127.0.0.1:25` (no TLS, for a server beside this one); these are the default ports.
"""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

SECURITY = {"smtp": "STARTTLS", "smtps": "TLS", "smtp+plain": "NONE"}
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}


class MailServer(NamedTuple):
    """What the address says."""

    host: str
    port: int
    security: str
    username: str
    password: str


def parse(url: str) -> MailServer:
    """Read the address. Raise ValueError, without its text, for what is none."""
    wrong = f"SMTP_URL must begin with {', '.join(SECURITY)} and name a host, and a port at most."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.scheme not in SECURITY or not parts.hostname or port == 0:
        raise ValueError(wrong)
    return MailServer(
        parts.hostname,
        port or _PORTS[parts.scheme],
        SECURITY[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def opened_by(url: str) -> list[str]:
    """Return the one host and port that the deployment vouches for; none for what cannot be read.

    `manage.py demo` says what is wrong with it.
    """
    try:
        server = parse(url)
    except ValueError:
        return []
    host = f"[{server.host}]" if ":" in server.host else server.host
    return [f"{host}:{server.port}"]
