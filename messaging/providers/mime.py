"""Serializing an email (RFC 5322, MIME) in microseconds.

The standard library takes over a millisecond for a message, so this module writes headers itself.
That is safe because no value can end a header: control characters become spaces, and text that is
not plain ASCII becomes encoded words (RFC 2047).
"""

import binascii
import re
import secrets
import time
from base64 import encodebytes
from collections.abc import Iterator
from email.utils import formatdate
from functools import lru_cache

from rme.core.provider import Email

_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_PLAIN = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
"""Words with single spaces between them, which folding and unfolding do not change."""
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,40}")
_RESERVED = {"from", "to", "subject", "date", "message-id", "mime-version"}
_WIDTH = 76
"""Characters of a line with an encoded word (RFC 2047 §2); RFC 5322 §2.1.1 asks for 78 of any."""
_LONG_WORD = 60
_WORD_BYTES = 45
"""Bytes in an encoded word: 60 of base64 and 12 around them make 72 of the 75 allowed."""
_LONGEST_LINE = 997
"""A line of a mail has 998 characters at most (RFC 5321 §4.5.3.1.6)."""
_CONTROLS = bytes(byte for byte in range(128) if byte < 32 and byte not in b"\t\n") + b"\x7f"
_ASCII = bytes(range(128))


def header(name: str, value: str) -> str:
    """Return a header of text or words, folded, without its line end."""
    value = _one_line(value)
    if not _PLAIN.fullmatch(value) or "=?" in value:
        return f"{name}: {_encoded(value, header_name=name)}" if value else f"{name}:"
    if len(name) + len(value) + 2 <= _WIDTH:
        return f"{name}: {value}"
    return f"{name}: {_folded(value, room=_WIDTH - len(name) - 2)}"


def text_header(name: str, value: str) -> str:
    """Return a header of free text: like `header`, but words too long for a line are encoded."""
    if len(name) + len(value) + 2 > _WIDTH and any(len(w) > _LONG_WORD for w in value.split(" ")):
        return f"{name}: {_encoded(_one_line(value), header_name=name)}"
    return header(name, value)


@lru_cache(maxsize=64)
def _sender(label: str, address: str) -> str:
    """Return the header From, which many mails have in common."""
    return mailbox("From", label, address)


def mailbox(name: str, label: str, address: str) -> str:
    """Return a header of one mailbox (RFC 5322 §3.4). The address must be valid ASCII."""
    label = _one_line(label).strip(" ")
    if not label:
        return f"{name}: {address}"
    if not _ATOMS.fullmatch(label) or "=?" in label:
        quoted = '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
        plain = label.isascii() and "=?" not in label and len(quoted) <= _LONG_WORD
        label = quoted if plain else _encoded(label, header_name=name)
    elif len(label) > _LONG_WORD:
        label = _encoded(label, header_name=name)
    last_line = label.rpartition("\n")[2]
    fits = len(name) + 2 + len(last_line) + len(address) + 3 <= _WIDTH
    return f"{name}: {label}{' ' if fits else chr(13) + chr(10) + ' '}<{address}>"


def write(email: Email, message_id: str = "") -> bytes:
    """Return an email with CRLF line ends for DATA; the transport does the dot-stuffing.

    Addresses and the Message-ID must be valid. Raises ValueError for an additional header whose
    name is not valid, or is one that this function writes.
    """
    lines = [
        _sender(email.from_name, email.from_address),
        mailbox("To", email.to_name, email.to),
        text_header("Subject", email.subject),
        f"Date: {_date(int(time.time()))}",
        f"Message-ID: <{message_id or email.message_id}>",
        "MIME-Version: 1.0",
    ]
    for name, value in email.headers.items():
        if (
            not _HEADER_NAME.fullmatch(name)
            or name.lower() in _RESERVED
            or name.lower().startswith("content-")
        ):
            raise ValueError(f"not a header to add: {name!r}")
        lines.append(header(name, value))
    head = "\r\n".join(lines).encode("ascii") + b"\r\n"
    if not (email.text and email.html):
        return head + (_part(email.html, b"html") if email.html else _part(email.text, b"plain"))
    boundary = b"=_" + secrets.token_hex(12).encode()  # `=_` is in neither base64 nor QP
    return b"".join(
        (
            *(head, b'Content-Type: multipart/alternative; boundary="', boundary, b'"\r\n\r\n'),
            *(b"--", boundary, b"\r\n", _part(email.text, b"plain")),
            *(b"\r\n--", boundary, b"\r\n", _part(email.html, b"html")),
            *(b"\r\n--", boundary, b"--\r\n"),
        )
    )


def _one_line(value: str) -> str:
    if value.isprintable():  # so it has neither
        return value
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _BREAKING.sub(" ", value))


def _encoded(value: str, header_name: str) -> str:
    """Return a text as encoded words, one for each line; readers join them without spaces."""
    first = (_WIDTH - len(header_name) - 2 - 12) // 4 * 3
    return "\r\n ".join(
        f"=?utf-8?B?{binascii.b2a_base64(chunk, newline=False).decode()}?="
        for chunk in _chunks(value.encode(), min(first, _WORD_BYTES))
    )


def _chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Split UTF-8 between characters, as each encoded word must be valid alone (RFC 2047 §5).

    The first chunk has at most `size` bytes, the others as many as an encoded word holds.
    """
    start = 0
    while start < len(data):
        end = min(start + size, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end]
        start, size = end, _WORD_BYTES


def _folded(value: str, room: int) -> str:
    """Return a line, broken at spaces where it becomes too long."""
    lines: list[str] = []
    line = ""
    for word in value.split(" "):
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line, room = word, _WIDTH - 1
        else:
            line = f"{line} {word}" if line else word
    return "\r\n ".join((*lines, line))


def _part(text: str, subtype: bytes) -> bytes:
    """Return a text as a MIME part with its headers; it ends with a line end."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.endswith("\n"):
        text += "\n"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()
    charset, encoding, body = b"utf-8", b"base64", b""
    if _is_plain(data):
        charset, encoding, body = b"us-ascii", b"7bit", data.replace(b"\n", b"\r\n")
    elif len(data.translate(None, _ASCII)) * 6 <= len(data):
        encoding = b"quoted-printable"
        body = binascii.b2a_qp(data.replace(b"\n", b"\r\n"), istext=True)
    else:
        body = encodebytes(data.replace(b"\n", b"\r\n")).replace(b"\n", b"\r\n")
    return b"".join(
        (
            *(b"Content-Type: text/", subtype, b'; charset="', charset, b'"\r\n'),
            *(b"Content-Transfer-Encoding: ", encoding, b"\r\n\r\n", body),
        )
    )


def _is_plain(data: bytes) -> bool:
    """Return whether a text needs no encoding: ASCII, short lines, nothing that a relay changes."""
    return (
        data.isascii()
        and len(data.translate(None, _CONTROLS)) == len(data)
        and b" \n" not in data
        and b"\t\n" not in data
        and max(map(len, data.split(b"\n"))) <= _LONGEST_LINE
    )


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second).replace("-0000", "+0000")
