"""Which addresses may be called: public ones, and those that the deployment opens.

The check is made on the address that the socket connects to, so that no name, redirect or second
resolution can lead elsewhere.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

_SPECIAL = """\
0.0.0.0/8           this network (RFC 6890 has most of these)
10.0.0.0/8          private
100.64.0.0/10       carrier-grade NAT, and a cloud's metadata service
127.0.0.0/8         loopback
168.63.129.16/32    a cloud's metadata service, among public addresses
169.254.0.0/16      link-local, and most clouds' metadata services
172.16.0.0/12       private
192.0.0.0/24        protocols, and a cloud's metadata service
192.0.2.0/24        documentation
192.31.196.0/24     AS112
192.52.193.0/24     AMT
192.88.99.0/24      6to4 relays
192.168.0.0/16      private
192.175.48.0/24     AS112
198.18.0.0/15       benchmarks
198.51.100.0/24     documentation
203.0.113.0/24      documentation
224.0.0.0/4         multicast
240.0.0.0/4         reserved, and broadcast
2001::/23           Teredo (with any IPv4 address inside), ORCHID, benchmarks, protocols
2001:db8::/32       documentation
2002::/16           6to4, with any IPv4 address inside
2620:4f:8000::/48   AS112
3fff::/20           documentation
"""
_NOT_PUBLIC = tuple(ip_network(line.split()[0]) for line in _SPECIAL.splitlines())
_GLOBAL_UNICAST = ip_network("2000::/3")
"""All public IPv6 addresses (RFC 4291 §2.4): mapped, local and multicast ones lie outside."""
_NAT64 = ip_network("64:ff9b::/96")
"""IPv4 addresses from networks without IPv4 (RFC 6052): the address inside is checked."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "smtp": 25, "smtps": 465}
_ORIGIN = re.compile(
    r"(https?|smtps?)://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?(?:[/?#]|\Z)",
    re.IGNORECASE,
)
"""Stricter than the URL standards: no user name, no escapes, no IDN (hosts come as A-labels):
libcurl cannot read such a URL in another way."""
_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?|([0-9a-f.]*:[0-9a-f.:]+)")
"""`name`, `name:port`, `[address]:port`, or an IPv6 address alone."""


class Origin(NamedTuple):
    """Scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int


@lru_cache(maxsize=1024)
def origin(url_start: str) -> Origin | None:
    """Parse scheme, host (lower case, no brackets) and port; None for a URL not to be called."""
    match = _ORIGIN.match(url_start)
    if not match:
        return None
    scheme = match[1].lower()
    port = int(match[3] or _DEFAULT_PORTS[scheme])
    return Origin(scheme, _fold(match[2]), port) if 0 < port < 65536 else None


def origin_of(url: str) -> Origin | None:
    """Parse the origin of a URL; see `origin`, whose cache needs URLs without their paths."""
    return origin("/".join(url.split("/", 3)[:3]))


@lru_cache(maxsize=1024)
def _fold(host: str) -> str:
    host = host.lower().strip("[]").rstrip(".")
    try:
        return str(ip_address(host))
    except ValueError:
        return host


def is_public(address: str) -> bool:
    """Return whether an address (a text; a scope is ignored) is public."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed in _NAT64:
        parsed = IPv4Address(int(parsed) & 0xFFFFFFFF)
    if isinstance(parsed, IPv6Address) and parsed not in _GLOBAL_UNICAST:
        return False
    return not any(parsed in network for network in _NOT_PUBLIC)


class AddressPolicy:
    """Which hosts and addresses may be called.

    Without `open_hosts` these are public addresses, by https and by SMTP (with or without TLS; no
    log-in without TLS). `open_hosts` are names or addresses, with or without a port
    (`mail.internal`, `10.0.0.5:25`, `[::1]:8025`), that may be called although they are not
    public, and without TLS. Raises ValueError for an entry that is not a host.
    """

    def __init__(self, open_hosts: Iterable[str] = ()) -> None:
        self._open: set[tuple[str, int | None]] = set()
        for entry in open_hosts:
            match = _HOST.fullmatch(entry.strip().lower())
            if not match:
                raise ValueError(f"not a host, or host and port: {entry!r}")
            port = int(match[2]) if match[2] else None
            self._open.add((_fold(match[1] or match[3]), port))

    def opens(self, host: str, port: int) -> bool:
        """Return whether the deployment opens a host or an address, for all ports or this one."""
        if not self._open:
            return False
        host = _fold(host)
        return (host, None) in self._open or (host, port) in self._open

    def allows(self, address: str, port: int) -> bool:
        """Return whether a socket may connect to an address (a text)."""
        return is_public(address) or self.opens(address.partition("%")[0], port)

    def refuses(self, origin: Origin, *, logs_in_clear: bool = False) -> str:
        """Return why an origin may not be called, whatever its addresses; or an empty text."""
        if origin.scheme == "http" and not self.opens(origin.host, origin.port):
            return "the address is not https"
        if logs_in_clear and not self.opens(origin.host, origin.port):
            return "a log-in would go in clear"
        return ""
