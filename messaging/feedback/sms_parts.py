"""What people wrote to us by SMS, put together where a provider delivers it in parts.

Parts come in any order and any number of times. What is not whole after a day is dropped: the calls
that brought it are there for some days more.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import orjson
import structlog
from django.db import connection

from messaging.models import InboundSmsParts
from rme.core.db import sql
from rme.core.provider import InboundSms, SmsPart

log = structlog.get_logger(__name__)

KEPT_DAYS = 1
_T = InboundSmsParts._meta.db_table
_COLUMNS = "digest, account_id, texts, heard, received_at"
_KEEP = f"""
INSERT INTO {_T} ({_COLUMNS}) SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{_T}, %s)
ON CONFLICT (digest) DO UPDATE SET
  texts = excluded.texts, heard = excluded.heard, received_at = excluded.received_at
"""
_PURGE = f"""
DELETE FROM {_T} WHERE received_at < statement_timestamp() - make_interval(days => {KEPT_DAYS})
RETURNING account_id, heard
"""


@dataclass(frozen=True, slots=True)
class ReceivedSms:
    """What somebody wrote to an account of an organization, and the call that brought it."""

    organization_id: str
    account_id: int
    said: InboundSms
    received_at: datetime
    callback_id: str


@dataclass(slots=True)
class _Parted:
    """What has come of a letter: texts by the number of the part, as JSON names them."""

    texts: dict[str, str] = field(default_factory=dict)
    heard: bool = False

    def take(self, part: SmsPart, text: str) -> str | None:
        """Take a part; give the whole text when this was the last that was missing."""
        if self.texts.get(str(part.number), text) != text:  # phones begin their references anew
            self.texts, self.heard = {}, False
        self.texts[str(part.number)] = text
        if self.heard or len(self.texts) < part.total:
            return None
        self.heard = True
        return "".join(self.texts[str(number)] for number in range(1, part.total + 1))


def assemble(letters: Sequence[ReceivedSms]) -> list[ReceivedSms]:
    """Give the letters that are whole, in their order, and keep the parts of others.

    A letter in parts has the place of its last. Belongs into a transaction that has the gate lock
    of their organizations, since two who each had a part would know nothing of each other. Two
    statements, and none where nothing came in parts.
    """
    digests = [_digest(letter, letter.said.part) if letter.said.part else "" for letter in letters]
    wanted = set(digests) - {""}
    if not wanted:
        return list(letters)
    rows = InboundSmsParts.objects.filter(pk__in=wanted).values_list("digest", "texts", "complete")
    known = {digest: _Parted(texts, heard) for digest, texts, heard in rows}
    found: list[ReceivedSms] = []
    keep: dict[str, sql.Row] = {}
    for digest, letter in zip(digests, letters, strict=True):
        part = letter.said.part
        if part is None:
            found.append(letter)
            continue
        parted = known.setdefault(digest, _Parted())
        text = parted.take(part, letter.said.text)
        if text is not None:
            found.append(replace(letter, said=replace(letter.said, text=text, part=None)))
        keep[digest] = _row(digest, letter, parted)
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, [sql.as_json(list(keep.values()))])
    return found


def _digest(letter: ReceivedSms, part: SmsPart) -> str:
    said = letter.said
    name = [letter.account_id, said.sender, said.to, part.reference, part.total]
    return hashlib.sha256(orjson.dumps(name)).hexdigest()


def _row(digest: str, letter: ReceivedSms, parted: _Parted) -> sql.Row:
    return {
        "digest": digest,
        "account_id": letter.account_id,
        "texts": parted.texts,
        "heard": parted.heard,
        "received_at": letter.received_at,
    }


def purge() -> None:
    """Drop what is a day old; tell of what never became whole."""
    with connection.cursor() as cursor:
        cursor.execute(_PURGE)
        rows = cursor.fetchall()
    missing = Counter(account_id for account_id, heard in rows if not heard)
    for account_id, count in sorted(missing.items()):
        log.warning("letters.incomplete", account_id=account_id, count=count)
