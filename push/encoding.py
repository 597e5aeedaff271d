"""Base64url without padding (RFC 4648 §5), as all of Web Push writes it."""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any


def base64url(data: bytes) -> str:
    """Write bytes."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: Any) -> bytes:
    """Read bytes, with or without padding; none for what is not base64url, or over 100 letters."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,100}={0,2}", text):
        return b""
    try:
        return urlsafe_b64decode(text.rstrip("=") + "==")
    except binascii.Error:
        return b""
