"""Record ids: UUIDv7 (RFC 9562 §5.7) in canonical text form, so that ids sort by time."""

import random
import re
import uuid
from datetime import UTC, datetime, timedelta

import uuid_utils

KEY_RANGE = 2**40
"""The length of a range of integer keys. Each database whose rows may move to another one has a
range of its own: number N begins at N times this."""
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
    milliseconds, fraction = divmod(nanoseconds, 1_000_000)
    ordered = milliseconds << 80 | 0x7 << 76 | (fraction << 12) // 1_000_000 << 64
    return str(uuid.UUID(int=ordered | 0x2 << 62 | random.getrandbits(62)))


def is_canonical(text: str) -> bool:
    """Return whether a text is an id in canonical form."""
    return _CANONICAL.fullmatch(text) is not None


def parse(text: str) -> uuid.UUID | None:
    """Parse an id in canonical form, in lower or upper case; None for anything else."""
    try:
        identifier = uuid.UUID(text)
    except ValueError:
        return None
    return identifier if str(identifier) == text.lower() else None


def parse_reported(text: str) -> uuid.UUID | None:
    """Parse an id that another service returned, in any spelling of a UUID; else return None."""
    try:
        return uuid.UUID(text.strip())
    except ValueError:
        return None


_SALESFORCE = re.compile(r"(?:00[0-9A-Za-z]|[57]0[01]|a[0-9][0-9A-Za-z])[0-9A-Za-z]{12}")
"""A Salesforce id without its checksum, of a person, a company or a custom object."""
_CHECKSUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"


def salesforce_id(bare: str) -> str:
    """Return a 15-character id with its checksum: three characters that mark the capitals."""
    sums = (
        sum(1 << i for i, char in enumerate(bare[at : at + 5]) if "A" <= char <= "Z")
        for at in (0, 5, 10)
    )
    return bare + "".join(_CHECKSUM[each] for each in sums)


def record_id(text: str) -> str:
    """Return the id of a person or a record in its normal form, for storing and comparing.

    UUIDs become lower case, and Salesforce ids get 18 characters; others stay as they are.
    """
    if len(text) == 36 and is_canonical(lower := text.lower()):
        return lower
    return salesforce_id(text) if _SALESFORCE.fullmatch(text) else text


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
