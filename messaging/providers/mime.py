"""Writing an email (RFC 5322, MIME): fast where everything is plain ASCII, correct for all else.

The standard library takes over a millisecond a message; filling in a form of headers takes some
microseconds. It is safe because every value is first brought into a form that cannot end a header:
control characters become spaces, and what is not plain ASCII becomes encoded words (RFC 2047).
"""

import binascii
import re
import secrets
import time
from email.header import Header
from email.utils import formatdate
from functools import lru_cache

from messaging.providers.base import Email

_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN_WORD = re.compile(r"^[A-Za-z0-9 !#$%&'*+/^_`{|}~.,;:()@?-]{1,60}$")
_ATOMS = re.compile(r"^[A-Za-z0-9 !#$%&'*+/^_`{|}~-]{1,60}$")
_LONG_LINE = re.compile(rb"[^\n]{990}")
_WIDTH = 57  # bytes that make 76 characters of base64 (RFC 2045 §6.8)


def header_text(value: str) -> str:
    """Make a text fit for a header: no control characters, encoded words where it is not ASCII."""
    value = _BREAKING.sub(" ", value)
    if _PLAIN_WORD.match(value) and "=?" not in value and value == value.strip():
        return value
    return Header(value, "utf-8", maxlinelen=75).encode(linesep="\r\n")


def mailbox(name: str, address: str) -> str:
    """Write a mailbox (RFC 5322 §3.4). The address has been checked to be plain ASCII."""
    name = _BREAKING.sub(" ", name).strip()
    if not name:
        return f"<{address}>"
    if _ATOMS.match(name) and "=?" not in name:
        return f"{name} <{address}>"
    return f"{Header(name, 'utf-8', maxlinelen=75).encode(linesep=chr(13) + chr(10))} <{address}>"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=False)


def part(text: str, subtype: str) -> bytes:
    """Write a text as a MIME part, with its headers."""
    data = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace")
    if data.isascii() and b"\x00" not in data and not _LONG_LINE.search(data):
        encoding, body = b"7bit", data.replace(b"\n", b"\r\n")
    else:
        encoding, body = b"base64", _base64(data.replace(b"\n", b"\r\n"))
    charset = b"us-ascii" if encoding == b"7bit" else b"utf-8"
    return (
        b"Content-Type: text/" + subtype.encode() + b'; charset="' + charset + b'"\r\n'
        b"Content-Transfer-Encoding: " + encoding + b"\r\n\r\n" + body + b"\r\n"
    )


def _base64(data: bytes) -> bytes:
    lines = (
        binascii.b2a_base64(data[start : start + _WIDTH], newline=False)
        for start in range(0, len(data), _WIDTH)
    )
    return b"\r\n".join(lines)


def write(email: Email) -> bytes:
    """Write an email with CRLF line ends, ready for DATA (dots are the transport's to stuff)."""
    headers = [
        f"From: {mailbox(email.from_name, email.from_address)}",
        f"To: {mailbox(email.to_name, email.to)}",
        f"Subject: {header_text(email.subject)}",
        f"Date: {_date(int(time.time()))}",
        f"Message-ID: <{email.message_id}>",
        "MIME-Version: 1.0",
    ]
    headers += [f"{name}: {_BREAKING.sub(' ', value)}" for name, value in email.headers.items()]
    head = "\r\n".join(headers).encode("ascii", "replace") + b"\r\n"
    if email.text and email.html:
        boundary = f"=_{secrets.token_hex(12)}".encode()
        return (
            head
            + b'Content-Type: multipart/alternative; boundary="'
            + boundary
            + b'"\r\n\r\n'
            + b"--"
            + boundary
            + b"\r\n"
            + part(email.text, "plain")
            + b"--"
            + boundary
            + b"\r\n"
            + part(email.html, "html")
            + b"--"
            + boundary
            + b"--\r\n"
        )
    if email.html:
        return head + part(email.html, "html")
    return head + part(email.text, "plain")
