"""The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header)."""

NAME = "Idempotency-Key"


def read(header: str, limit: int) -> str | None:
    """Return the key of a header, without quotes; empty if there is none, None if it is invalid.

    The draft quotes the key; quoted and bare are the same key. It is printable ASCII of at most
    `limit` characters.
    """
    text = header.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text if len(text) <= limit and text.isascii() and text.isprintable() else None
