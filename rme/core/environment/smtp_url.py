"""`SMTP_URL`: the mail server of the demo organization.

`smtp://user:password@host:587` (STARTTLS), `smtps://…:465` (TLS from the first byte),
`smtp+plain://127.0.0.1:25` (no TLS, for a server on this machine); these are the default ports.
"""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

SECURITY = {"smtp": "STARTTLS", "smtps": "TLS", "smtp+plain": "NONE"}
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}


class MailServer(NamedTuple):
    """The parts of the URL."""

    host: str
    port: int
    security: str
    username: str
    password: str


def parse(url: str) -> MailServer:
    """Parse the URL. Raises ValueError, whose message does not quote it, for an invalid one."""
    message = f"SMTP_URL must begin with {', '.join(SECURITY)} and name a host, and a port at most."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(message) from None
    if parts.scheme not in SECURITY or not parts.hostname or port == 0:
        raise ValueError(message)
    return MailServer(
        parts.hostname,
        port or _PORTS[parts.scheme],
        SECURITY[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def opened_by(url: str) -> list[str]:
    """Return the `host:port` that outbound connections may reach because of it.

    Empty for an invalid URL, which `manage.py demo` reports.
    """
    try:
        server = parse(url)
    except ValueError:
        return []
    host = f"[{server.host}]" if ":" in server.host else server.host
    return [f"{host}:{server.port}"]
