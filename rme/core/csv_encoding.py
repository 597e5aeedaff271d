"""The encoding of CSV files: UTF-8, UTF-16 or Windows-1252, as spreadsheets save them."""

import codecs
from typing import IO

from django.utils.translation import gettext as _

_BLOCK = 64 * 1024


class Unreadable(ValueError):
    """The file cannot be imported at all."""


class LineSource:
    """The lines of a file, with UTF-16 as UTF-8. It detects any other encoding line by line.

    A file is Windows-1252 if its first line beyond ASCII isn't UTF-8. Byte order marks are left
    out.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._buffer = bytearray(file.read(_BLOCK))
        self._position = 0
        self._is_first = True
        self._encoding = ""
        """The encoding of lines beyond ASCII; empty until the first of them."""
        encoding = _utf_16(self._buffer)
        self._decoder = codecs.getincrementaldecoder(encoding)() if encoding else None
        if self._decoder:
            self._encoding = "utf-8"
            self._buffer = bytearray(self._as_utf_8(bytes(self._buffer)))
        # Old spreadsheets end lines by a carriage return alone.
        self._end = b"\r" if b"\r" in self._buffer and b"\n" not in self._buffer else b"\n"

    @property
    def encoding(self) -> str:
        """Return the encoding's name, as far as it was read. ASCII is UTF-8."""
        if self._decoder:
            return "UTF-16"
        return "Windows-1252" if self._encoding == "cp1252" else "UTF-8"

    def readline(self, limit: int) -> bytes:
        """Return the next line with its end, or `limit` bytes of it; nothing at the end."""
        while (end := self._buffer.find(self._end, self._position)) < 0:
            if len(self._buffer) - self._position >= limit or not self._fill():
                end = len(self._buffer) - 1
                break
        end = min(end + 1, self._position + limit)
        line = bytes(self._buffer[self._position : end])
        self._position = end
        return line

    def decode(self, line: bytes, number: int) -> str:
        """Return the text of a line. Raises Unreadable."""
        if self._is_first:
            line = line.removeprefix(codecs.BOM_UTF8)
            self._is_first = False
        if line.isascii():
            return line.decode("ascii")
        for encoding in (self._encoding,) if self._encoding else ("utf-8", "cp1252"):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                continue
            self._encoding = encoding
            return text
        raise Unreadable(
            _("Line %(number)s is not UTF-8: save the file as UTF-8.") % {"number": number}
        )

    def _fill(self) -> bool:
        """Read more of the file; return whether there was more."""
        block = self._file.read(_BLOCK)
        del self._buffer[: self._position]
        self._position = 0
        self._buffer += self._as_utf_8(block) if self._decoder else block
        return bool(block)

    def _as_utf_8(self, block: bytes) -> bytes:
        assert self._decoder is not None  # only called for UTF-16
        try:
            return self._decoder.decode(block, not block).encode()
        except UnicodeError:
            raise Unreadable(_("The file is not valid UTF-16: save it as UTF-8.")) from None


def _utf_16(head: bytes | bytearray) -> str:
    """Return the name of UTF-16 in the file's byte order, or nothing for another encoding.

    Without a byte order mark, the first character is ASCII, and its zero byte shows the order.
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(head) >= 2 and (head[0] == 0) != (head[1] == 0):
        return "utf-16-be" if head[0] == 0 else "utf-16-le"
    return ""
