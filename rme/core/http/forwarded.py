"""A client's address: its kind, and the headers in which a proxy passes it. No Django."""

from ipaddress import ip_address


def last_entry(header: str) -> str:
    """Return the last entry of a list: the nearest proxy, ours, appended it."""
    return header.rpartition(",")[2].strip()


def pairs(header: str) -> dict[str, str]:
    """Parse the last element of `Forwarded`: `for=192.0.2.9;proto=https`."""
    parts = (pair.partition("=") for pair in last_entry(header).split(";"))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in parts}


def node(text: str) -> str:
    """Parse an address with or without a port; "" for an obfuscated name (RFC 7239 §6)."""
    bare = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ip_address(bare))
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
