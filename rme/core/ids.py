"""Record ids: UUIDv7 (RFC 9562 §5.7) in canonical text form, so that ids sort by time."""

import re
import uuid
from datetime import UTC, datetime, timedelta

import uuid_utils

_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id() -> uuid.UUID:
    """Make an id for the database. Later calls of one process give greater ids."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


def new_text_id() -> str:
    """Make an id in its canonical text form, which is what the API shows."""
    return str(uuid_utils.uuid7())


def is_canonical(text: str) -> bool:
    """Say whether a text is an id in canonical form."""
    return _CANONICAL.fullmatch(text) is not None


def parse(text: str) -> uuid.UUID | None:
    """Read an id in canonical form; None for anything else, which then exists nowhere."""
    try:
        identifier = uuid.UUID(text)
    except ValueError:
        return None
    return identifier if str(identifier) == text else None


def at_least(moment: datetime) -> uuid.UUID:
    """Give the least UUIDv7 of a moment: the border of a time range over ids."""
    # Before 1970 there are no ids, and the offset may lead out of the calendar.
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return uuid.UUID(int=(milliseconds << 80) | (0x7 << 76) | (0x2 << 62))


def moment(identifier: uuid.UUID) -> datetime:
    """Give the time inside an id, to the millisecond, in UTC."""
    return datetime.fromtimestamp((identifier.int >> 80) / 1000, UTC)


SKEW = timedelta(hours=1)
"""How far apart the clocks of two machines may be: ids are made by the clock of whoever writes."""


def earliest_beside(identifier: uuid.UUID) -> uuid.UUID:
    """Give the least id of what was written together with or after an id, by any machine."""
    return at_least(moment(identifier) - SKEW)
