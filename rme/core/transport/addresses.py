"""Which addresses may be called: public ones, and those that the deployment opens.

The check is made on the address that the socket is about to connect to, so that no name, redirect
or second resolution can lead elsewhere.
"""

import ipaddress
from collections.abc import Iterable

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")


class AddressPolicy:
    """Say what may be called.

    `open_hosts` are names or addresses, with or without a port (`mail.internal`, `10.0.0.5:25`),
    that may be called though they are not public, and without TLS.
    """

    def __init__(self, open_hosts: Iterable[str] = ()) -> None:
        self.open_hosts = frozenset(host.lower() for host in open_hosts)

    def opens(self, host: str, port: int) -> bool:
        """Say whether the deployment has opened a host as it stands in the URL."""
        host = host.lower()
        bare = host.strip("[]")
        return not self.open_hosts.isdisjoint(
            {host, bare, f"{host}:{port}", f"{bare}:{port}", f"[{bare}]:{port}"}
        )

    def allows(self, address: str) -> bool:
        """Say whether an address (as text, a scope is ignored) is public."""
        try:
            return is_public(ipaddress.ip_address(address.partition("%")[0]))
        except ValueError:
            return False


def is_public(address: IpAddress) -> bool:
    """Say whether an address is one of the public Internet (IANA's special registries).

    IPv4 addresses inside IPv6 ones (mapped, 6to4, Teredo, NAT64) must be public themselves.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inside(address)
        if inner is not None:
            return is_public(inner)
        if address in _NAT64_LOCAL or address.is_site_local:
            return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address.sixtofour:
        return address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
