"""The hand-off of a log-in from one cell to another.

It is a cookie of the browser that logged in, so another browser cannot use it, and it is
in no address and no log. The cell that made it has signed it; the one that it names takes it once,
and within `signatures.VALID_SECONDS`.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from rme.cells import signatures
from rme.core.db import clock
from rme.tenants.access.limits import single_use

COOKIE = "rme_hand_off"
PURPOSE = "hand-off"
SECONDS = signatures.VALID_SECONDS
METHODS = frozenset({"password", "mfa", "socialaccount", "password_reset"})
"""The proofs that are handed over; the receiving cell trusts them as its own."""


class InvalidHandOff(Exception):
    """The hand-off is missing, forged, late, for another cell, or was used before."""


@dataclass(frozen=True, slots=True)
class HandOff:
    """Who comes from which cell, and what has proven who it is."""

    source: str
    target: str
    person: str
    organization: str
    """The organization that the person has chosen; empty: none."""
    proofs: Sequence[Mapping[str, Any]]
    """When which method was used: `{"method": "mfa", "at": 1800000000.0}`."""
    chain: str
    """What all sessions of the log-in have in common."""
    began: int
    """When the session began: it ends as early as it would have ended there."""
    nonce: str

    @property
    def has_second_factor(self) -> bool:
        return any(each["method"] == "mfa" for each in self.proofs)


def make(
    target: str,
    person: UUID,
    organization: str,
    *,
    proofs: Sequence[Mapping[str, Any]],
    chain: str,
    began: int,
) -> str:
    """Return the value of the cookie for another cell."""
    factors = [
        {"method": each["method"], "at": each["at"]} for each in proofs if each["method"] in METHODS
    ]
    nonce = secrets.token_urlsafe(16)
    hand_off = HandOff(
        settings.CELL, target, str(person), organization, factors, chain, began, nonce
    )
    text = orjson.dumps(asdict(hand_off))
    signature = signatures.sign(settings.CELL_SECRET, PURPOSE, text).partition(" ")[2]
    return f"{base64.urlsafe_b64encode(text).decode().rstrip('=')}.{signature}"


def take(cookie: str) -> HandOff:
    """Return the hand-off of a cookie, which is used by that. Raise InvalidHandOff."""
    encoded, _, signature = cookie.partition(".")
    try:
        text = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        raise InvalidHandOff from None
    header = f"{signatures.SCHEME} {signature}"
    if not signatures.is_signed(settings.CELL_SECRET, PURPOSE, text, header):
        raise InvalidHandOff
    hand_off = HandOff(**orjson.loads(text))
    if hand_off.target != settings.CELL or hand_off.source not in settings.CELLS:
        raise InvalidHandOff
    _use(hand_off.nonce)
    return hand_off


def _use(nonce: str) -> None:
    """Store a hand-off as used; expired ones are swept. Raise InvalidHandOff."""
    digest = hashlib.sha256(f"{PURPOSE}\n{nonce}".encode()).hexdigest()
    until = clock.now() + timedelta(seconds=2 * signatures.VALID_SECONDS)
    if not single_use.store_once(digest, until):
        raise InvalidHandOff
