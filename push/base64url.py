"""Strict reading of base64url (RFC 4648 §5), which Web Push uses for its keys."""

import binascii
import re
from base64 import urlsafe_b64decode

_TEXT = re.compile(r"[A-Za-z0-9_-]{1,100}={0,2}")


def decode(text: object) -> bytes:
    """Return the bytes of a text of at most 100 characters; b"" if it is not base64url.

    Padding is optional. The library's own decoders skip characters that are not base64url.
    """
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        return b""
    try:
        return urlsafe_b64decode(text.rstrip("=") + "==")
    except binascii.Error:
        return b""
