"""What providers called us with: kept as it arrived, and applied in batches.

A call is answered once it is in the database, and what it says is read later. Losing the task that
reads costs seconds, and a call that comes ten times, or late, or before the worker has written down
that the message left, comes to the same.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.db import connection, transaction

from messaging.consent import gate_lock
from messaging.feedback import inbound_sms, provider_references, receipts
from messaging.feedback.inbound_sms import KeywordReply
from messaging.feedback.sms_parts import ReceivedSms
from messaging.models import Callback as Row
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.provider import CallbackRequest, DeliveryReceipt, InboundSms, Provider, UnknownCode

log = structlog.get_logger(__name__)

BATCH = 500
KEPT_DAYS = 7
LETTER_DAYS = 400
"""For so long what a person wrote is known again, and not heard twice."""
PUT_OFF_DAYS = 1
"""A report that came too early for so long will never fit."""
STRANGE_TRIES = 9
"""How often a report on a message that we do not know is tried, over eight minutes: an account may
be shared with others, whose reports come to us too."""
_T = Row._meta.db_table
_HEADERS = ("content-type", "user-agent")
"""What of the headers is kept: signatures were checked, and others may hold secrets."""
_SECRET = re.compile(r"(?<![^&])key=[^&]*")

_KEEP = f"""
INSERT INTO {_T} (id, organization_id, account_id, digest, method, query, headers, body,
  received_at, tries) VALUES """
_ROW = "(%s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, 0)"
_ONCE = " ON CONFLICT (digest) DO NOTHING"
_DUE = f"""
SELECT id, organization_id, account_id, method, query, headers, body, received_at, tries
FROM {_T} WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT {BATCH}
FOR UPDATE SKIP LOCKED
"""
_DONE = f"""
UPDATE {_T} SET tries = tries + 1, letter = id = ANY(%s), due_at = CASE
  WHEN id = ANY(%s) AND received_at > statement_timestamp() - make_interval(days => {PUT_OFF_DAYS})
  THEN statement_timestamp() + make_interval(secs => least(300, power(2, least(tries, 10)))) END
WHERE id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class CallbackAccount:
    """An account that a provider may call."""

    account_id: int
    organization_id: str
    url: str
    provider: Provider


_receivers: TtlCache[str, CallbackAccount] = TtlCache(seconds=2)


def find_account(public_id: str) -> CallbackAccount | None:
    """Find the account that a call is for; paused ones too, as reports come later."""
    if ids.parse(public_id) is None:
        return None

    def load() -> CallbackAccount | None:
        row = ProviderAccount.objects.filter(public_id=public_id).first()
        return _receiver(row) if row else None

    return _receivers.get(public_id, load)


def _receiver(row: ProviderAccount) -> CallbackAccount | None:
    account = organization_policy.account_of(row)
    if account.provider is None:
        return None
    return CallbackAccount(row.pk, row.organization_id, account.callback_url, account.provider)


def store(whose: CallbackAccount, *calls: CallbackRequest) -> bool:
    """Keep authentic calls, each once, by one statement; say whether any is new."""
    values = [value for call in calls for value in _row(whose, call)]
    with connection.cursor() as cursor:
        cursor.execute(_KEEP + ", ".join([_ROW] * len(calls)) + _ONCE, values)
        return bool(cursor.rowcount)


def _row(whose: CallbackAccount, callback: CallbackRequest) -> list[Any]:
    digest = hashlib.sha256(
        orjson.dumps([whose.account_id, callback.method, callback.query]) + callback.body
    ).hexdigest()
    headers = {name: callback.headers[name] for name in _HEADERS if name in callback.headers}
    return [
        ids.new_id(),
        whose.organization_id,
        whose.account_id,
        digest,
        callback.method,
        _SECRET.sub("key=", callback.query),
        orjson.dumps(headers).decode(),
        callback.body,
        callback.received_at,
    ]


def apply_due() -> tuple[int, list[KeywordReply]]:
    """Apply one batch; give how many calls that were, and what is to be answered to people.

    The number of statements does not grow with the calls. Several may work at once.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_DUE)
            rows = cursor.fetchall()
        if not rows:
            return 0, []
        known = ProviderAccount.objects.in_bulk({row[2] for row in rows})
        whose = {pk: _receiver(row) for pk, row in known.items()}
        reports: dict[UUID, list[tuple[int, DeliveryReceipt]]] = {}
        strange: dict[UUID, list[tuple[int, DeliveryReceipt]]] = {}
        letters: list[ReceivedSms] = []
        for row in rows:
            account = whose.get(row[2])
            if account is None:
                continue
            for said in _read(account, row):
                if isinstance(said, DeliveryReceipt):
                    known_as = reports if said.attempt_id else strange
                    known_as.setdefault(row[0], []).append((row[2], said))
                elif isinstance(said, UnknownCode):
                    _tell(account, row, said)
                else:
                    letters.append(_letter(row, said))
        gate_lock.take_exclusive(_deciding(rows, [*reports.items(), *strange.items()], letters))
        unknown = _recognize(strange, reports)
        early = receipts.apply_provider_receipts(reports)
        early |= {row[0] for row in rows if row[0] in unknown and row[8] < STRANGE_TRIES}
        answers = inbound_sms.apply(letters)
        with connection.cursor() as cursor:
            heard = [UUID(letter.callback_id) for letter in letters]
            cursor.execute(_DONE, [heard, list(early), [row[0] for row in rows]])
    return len(rows), answers


def _deciding(
    rows: Sequence[Sequence[object]],
    reports: Sequence[tuple[UUID, Sequence[tuple[int, DeliveryReceipt]]]],
    letters: Sequence[ReceivedSms],
) -> set[str]:
    """Name the organizations for which something may be decided.

    All at once, and before any row of a delivery: another order could deadlock.
    """
    deciding = {
        key for key, told in reports if any(receipts.needs_gate_lock(said) for _, said in told)
    }
    return {letter.organization_id for letter in letters} | {
        str(row[1]) for row in rows if row[0] in deciding
    }


def _recognize(
    strange: Mapping[UUID, Sequence[tuple[int, DeliveryReceipt]]],
    reports: dict[UUID, list[tuple[int, DeliveryReceipt]]],
) -> set[UUID]:
    """Add the reports that name a provider's own id to those on attempts; give the keys of others.

    The worker may have yet to write down the id; or it is of what somebody else sent.
    """
    found = provider_references.find(
        {(account, said.provider_id) for said_of in strange.values() for account, said in said_of}
    )
    unknown: set[UUID] = set()
    for key, entries in strange.items():
        for account, said in entries:
            attempt_id = found.get((account, said.provider_id))
            if attempt_id is None:
                unknown.add(key)
            else:
                reports.setdefault(key, []).append((account, replace(said, attempt_id=attempt_id)))
    return unknown


_PURGE = f"""
DELETE FROM {_T} WHERE due_at IS NULL AND received_at < statement_timestamp()
  - make_interval(days => CASE WHEN letter THEN {LETTER_DAYS} ELSE {KEPT_DAYS} END)
"""
_EMPTY = f"""
UPDATE {_T} SET query = '', headers = '{{}}', body = ''
WHERE letter AND NOT (query = '' AND body = '')
  AND received_at < statement_timestamp() - make_interval(days => {KEPT_DAYS})
"""


def purge() -> None:
    """Delete what was applied some days ago; of what people wrote, the contents."""
    with connection.cursor() as cursor:
        cursor.execute(_PURGE)
        cursor.execute(_EMPTY)


def _read(
    account: CallbackAccount, row: Sequence[object]
) -> Sequence[DeliveryReceipt | InboundSms | UnknownCode]:
    """Let a provider read a call; one that it cannot read must not hold up all others."""
    identifier, _, _, method, query, headers, body, received_at, _ = row
    callback = CallbackRequest(
        url=account.url,
        method=str(method),
        query=str(query),
        headers=_headers(headers),
        body=bytes(body),  # type: ignore[call-overload]
        received_at=received_at,  # type: ignore[arg-type]
    )
    try:
        return account.provider.read_callback(callback)
    except Exception:
        log.exception("callback.unreadable", kind=account.provider.kind, callback=str(identifier))
        return ()


def _tell(account: CallbackAccount, row: Sequence[object], said: UnknownCode) -> None:
    """Count a code that no table has, once, and tell by which call it came."""
    if row[-1]:  # it was put off, and told of before
        return
    kind = account.provider.kind
    unknown_codes.count(kind, said.code)
    log.warning("callback.unknown_code", kind=kind, code=said.code[:32], callback=str(row[0]))


def _headers(stored: object) -> Mapping[str, str]:
    value = orjson.loads(stored) if isinstance(stored, str) else stored
    return value if isinstance(value, dict) else {}


def _letter(row: Sequence[object], said: InboundSms) -> ReceivedSms:
    return ReceivedSms(str(row[1]), int(str(row[2])), said, _moment(row[7]), str(row[0]))


def _moment(value: object) -> datetime:
    assert isinstance(value, datetime)  # the column's type
    return value
