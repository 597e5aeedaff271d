"""Record ids: UUIDv7 (RFC 9562 §5.7) in canonical text form, so that ids sort by time."""

import random
import re
import uuid
from datetime import UTC, datetime, timedelta

import uuid_utils

_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id() -> uuid.UUID:
    """Return a new id. Ids of later calls in one process are greater."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


def new_text_id() -> str:
    """Return a new id in its canonical text form, as the API shows it."""
    return str(uuid_utils.uuid7())


def text_id_of(nanoseconds: int) -> str:
    """Return a new id of a moment since 1970, in canonical text form.

    Its order is exact to a quarter of a microsecond (RFC 9562 §6.2, method 3).
    """
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    ordered = milliseconds << 80 | 0x7 << 76 | (rest << 12) // 1_000_000 << 64
    return str(uuid.UUID(int=ordered | 0x2 << 62 | random.getrandbits(62)))


def is_canonical(text: str) -> bool:
    """Return whether a text is an id in canonical form."""
    return _CANONICAL.fullmatch(text) is not None


def parse(text: str) -> uuid.UUID | None:
    """Parse an id in canonical form; None for anything else, which no row has."""
    try:
        identifier = uuid.UUID(text)
    except ValueError:
        return None
    return identifier if str(identifier) == text else None


def at_least(moment: datetime) -> uuid.UUID:
    """Return the least UUIDv7 of a moment: the bound of a time range over ids."""
    # There are no ids before 1970, and an offset may lead there.
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return uuid.UUID(int=(milliseconds << 80) | (0x7 << 76) | (0x2 << 62))


def moment(identifier: uuid.UUID) -> datetime:
    """Return the time inside an id, to the millisecond, in UTC."""
    return datetime.fromtimestamp((identifier.int >> 80) / 1000, UTC)


SKEW = timedelta(hours=1)
"""How far apart the clocks of two machines may be: each machine makes ids by its own clock."""


def earliest_concurrent(identifier: uuid.UUID) -> uuid.UUID:
    """Return the least id of rows that any machine wrote together with an id, or after it."""
    return at_least(moment(identifier) - SKEW)
