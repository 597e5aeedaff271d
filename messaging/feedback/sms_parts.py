"""Long inbound SMS: joining the parts that a provider delivers one by one.

Parts come in any order and may be repeated. An SMS that is not complete after a day is dropped;
the callbacks that brought its parts are stored for some days more.
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

STORED_DAYS = 1
_T = InboundSmsParts._meta.db_table
_COLUMNS = "digest, account_id, texts, heard, received_at"
_STORE = f"""
INSERT INTO {_T} ({_COLUMNS}) SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{_T}, %s)
ON CONFLICT (digest) DO UPDATE SET
  texts = excluded.texts, heard = excluded.heard, received_at = excluded.received_at
"""
_PURGE = f"""
DELETE FROM {_T} WHERE received_at < statement_timestamp() - make_interval(days => {STORED_DAYS})
RETURNING account_id, heard
"""


@dataclass(frozen=True, slots=True)
class ReceivedSms:
    """An inbound SMS with the account that received it and the callback that brought it."""

    organization_id: str
    account_id: int
    sms: InboundSms
    received_at: datetime
    callback_id: str


@dataclass(slots=True)
class _Parts:
    """The parts of one long SMS so far. `texts` is by the part's number, as JSON keys are text."""

    texts: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def add(self, part: SmsPart, text: str) -> str | None:
        """Add a part; return the whole text if this was the last one that was missing."""
        if self.texts.get(str(part.number), text) != text:  # a phone reuses its references
            self.texts, self.complete = {}, False
        self.texts[str(part.number)] = text
        if self.complete or len(self.texts) < part.total:
            return None
        self.complete = True
        return "".join(self.texts[str(number)] for number in range(1, part.total + 1))


def assemble(received: Sequence[ReceivedSms]) -> list[ReceivedSms]:
    """Return the complete SMS in their order, and store the parts of the others.

    A long SMS takes the place of its last part. Call this in a transaction that has the gate locks
    of the organizations: two workers with a part each would not see each other's. Two statements,
    and none if there are no parts.
    """
    digests = [_digest(each, each.sms.part) if each.sms.part else "" for each in received]
    wanted = set(digests) - {""}
    if not wanted:
        return list(received)
    known = {
        row.digest: _Parts(row.texts, row.complete)
        for row in InboundSmsParts.objects.filter(pk__in=wanted)
    }
    complete: list[ReceivedSms] = []
    changed: dict[str, sql.Row] = {}
    for digest, each in zip(digests, received, strict=True):
        part = each.sms.part
        if part is None:
            complete.append(each)
            continue
        parts = known.setdefault(digest, _Parts())
        text = parts.add(part, each.sms.text)
        if text is not None:
            complete.append(replace(each, sms=replace(each.sms, text=text, part=None)))
        changed[digest] = _row(digest, each, parts)
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [sql.as_json(list(changed.values()))])
    return complete


def _digest(received: ReceivedSms, part: SmsPart) -> str:
    """Return the key of a long SMS: the account, both numbers, the reference and the total."""
    sms = received.sms
    name = [received.account_id, sms.sender, sms.to, part.reference, part.total]
    return hashlib.sha256(orjson.dumps(name)).hexdigest()


def _row(digest: str, received: ReceivedSms, parts: _Parts) -> sql.Row:
    return {
        "digest": digest,
        "account_id": received.account_id,
        "texts": parts.texts,
        "heard": parts.complete,
        "received_at": received.received_at,
    }


def purge() -> None:
    """Delete parts that are a day old, and log how many SMS never became complete."""
    with connection.cursor() as cursor:
        cursor.execute(_PURGE)
        rows = cursor.fetchall()
    incomplete = Counter(account_id for account_id, complete in rows if not complete)
    for account_id, count in sorted(incomplete.items()):
        log.warning("inbound_sms.incomplete", account_id=account_id, count=count)
