"""Cursors of paged lists: the id of the last row, opaque to callers, so that it may change."""

import base64
import binascii
from uuid import UUID

from rme.core import errors


def cursor_of(identifier: UUID) -> str:
    """Return the cursor of the page that begins after a row."""
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def read_cursor(text: str) -> UUID:
    """Return the id that a cursor stands for. Raises InvalidPayload."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        raise errors.InvalidPayload.at("cursor", "not a cursor of ours") from None
