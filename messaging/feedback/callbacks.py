"""Provider callbacks: stored as they arrive, and applied in batches.

A callback is answered once it is in the database, and read later. If the task that reads it is
lost, that costs seconds. A callback may be repeated, late, or earlier than the record that the
message left: the final state is the same.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from messaging.consent import gate_lock, keywords
from messaging.consent.keywords import Word
from messaging.feedback import inbound_sms, provider_references, receipts
from messaging.feedback.inbound_sms import KeywordReply
from messaging.feedback.receipts import AccountReceipt
from messaging.feedback.sms_parts import ReceivedSms
from messaging.models import Callback, CallbackLogEntry, ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    InboundSms,
    Provider,
    UnknownCode,
)
from rme.tenants import cells

log = structlog.get_logger(__name__)

BATCH = 500
STORED_DAYS = 7
INBOUND_STORED_DAYS = 400
"""How long the digest of an inbound SMS stays, so that a repeated callback is recognized."""
REPEAT_SECONDS = 600
"""An inbound SMS without an id counts as repeated only in the same span of this length."""
RETRY_DAYS = 1
"""How long a receipt is tried again that comes before the record of its attempt."""
UNKNOWN_TRIES = 9
"""How often a receipt for an unknown message is tried, over eight minutes. An account may be shared
with other systems, whose receipts come to us too."""
DETAIL_LIMIT = 32
Verdict = CallbackLogEntry.Verdict
_T = Callback._meta.db_table
_HEADERS = ("content-type", "user-agent")
"""The headers to store. The signature was checked, and other headers may hold secrets."""
_SECRET = re.compile(r"(?<![^&])key=[^&]*")

_LOG = CallbackLogEntry._meta.db_table
_VALUES = "(%s::uuid, %s, %s::bigint, %s, %s, %s, %s::jsonb, %s::bytea, %s::timestamptz)"
_INSERT = f"""
WITH given(id, organization_id, account_id, digest, method, query, headers, body, received_at) AS (
  VALUES {{}}
), stored AS (
  INSERT INTO {_T} (id, organization_id, account_id, digest, method, query, headers, body,
    received_at, tries)
  SELECT *, 0 FROM given ON CONFLICT (digest) DO NOTHING RETURNING id
), repeated AS (
  INSERT INTO {_LOG} (organization_id, id, account_id, verdict, detail, method, size, count, at)
  SELECT organization_id, id, account_id, '{Verdict.DUPLICATE.value}', '', method, length(body), 1,
    received_at
  FROM given WHERE id NOT IN (SELECT id FROM stored)
)
SELECT count(*){{}} FROM stored
"""
_DUE = f"""
SELECT id, organization_id, account_id, method, query, headers, body, received_at, tries
FROM {_T} t WHERE due_at <= statement_timestamp() AND {cells.here("t.organization_id")}
ORDER BY due_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
"""
_DONE = f"""
WITH noted AS (
  INSERT INTO {_LOG} (organization_id, id, account_id, verdict, detail, method, size, count, at)
  SELECT c.organization_id, c.id, c.account_id, v.verdict, v.detail, c.method, length(c.body), 1,
    c.received_at
  FROM unnest(%s::uuid[], %s::text[], %s::text[]) v(id, verdict, detail)
  JOIN {_T} c ON c.id = v.id
  ON CONFLICT DO NOTHING
)
UPDATE {_T} SET tries = tries + 1, letter = id = ANY(%s), due_at = CASE
  WHEN id = ANY(%s) AND received_at > statement_timestamp() - make_interval(days => {RETRY_DAYS})
  THEN statement_timestamp() + make_interval(secs => least(300, power(2, least(tries, 10)))) END
WHERE id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class CallbackAccount:
    """A provider account that receives callbacks. `url` is its callback URL."""

    account_id: int
    organization_id: str
    url: str
    provider: Provider


class _StoredCallback(NamedTuple):
    """A callback that is due, as stored."""

    id: UUID
    organization_id: str
    account_id: int
    method: str
    query: str
    headers: str | Mapping[str, str]
    body: bytes
    received_at: datetime
    tries: int


_accounts: TtlCache[str, CallbackAccount] = TtlCache(seconds=2)


def find_account(public_id: str) -> CallbackAccount | None:
    """Return the account of a callback URL, also if it is paused: receipts come later."""
    if ids.parse(public_id) is None:
        return None

    def load() -> CallbackAccount | None:
        row = ProviderAccount.objects.filter(public_id=public_id).first()
        return _callback_account(row) if row else None

    return _accounts.get(public_id, load)


def _callback_account(row: ProviderAccount) -> CallbackAccount | None:
    """Return an account that receives callbacks; None if its settings are invalid."""
    account = organization_policy.account_of(row)
    if account.provider is None:
        return None
    return CallbackAccount(row.pk, row.organization_id, account.callback_url, account.provider)


def store(account: CallbackAccount, *requests: CallbackRequest) -> bool:
    """Store authentic callbacks by one statement, each once; return whether any is new.

    It also notes those that came before. Raise what `cells.require_here` raises, and store nothing.
    """
    owners = [account.organization_id]
    check = cells.accepted_here(owners)
    values = [value for request in requests for value in _values(account, request)]
    rows = ", ".join([_VALUES] * len(requests))
    text = _INSERT.format(rows, f", ({check.text})" if check else "")
    with cells.refusals(owners), connection.cursor() as cursor:
        cursor.execute(text, [*values, *(check.parameters if check else ())])
        count, *_ = cursor.fetchone()
    return bool(count)


def _values(account: CallbackAccount, request: CallbackRequest) -> list[Any]:
    """Return the values of a row, in the order of `_INSERT`."""
    callback_id = ids.new_id()
    call = [account.account_id, request.method, request.query]
    call += _distinction(account, request, callback_id)
    digest = hashlib.sha256(orjson.dumps(call) + request.body).hexdigest()
    headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
    return [
        callback_id,
        account.organization_id,
        account.account_id,
        digest,
        request.method,
        _SECRET.sub("key=", request.query),
        orjson.dumps(headers).decode(),
        request.body,
        request.received_at,
    ]


def _distinction(
    account: CallbackAccount, request: CallbackRequest, callback_id: UUID
) -> list[str | int]:
    """Return what distinguishes a call from equal ones about another SMS; mostly nothing.

    An inbound SMS without an id may be a repeated call, or the same words of another day. STOP
    counts each time, since a repeated one does no harm; others are repeated for some minutes.
    """
    if Channel.SMS not in account.provider.channels:
        return []
    items = _read(account, request, callback_id) or ()
    texts = [item.text for item in items if isinstance(item, InboundSms) and not item.id]
    found = [keywords.find(text) for text in texts]
    if any(keyword and keyword.word is Word.STOP for keyword in found):
        return [str(callback_id)]
    return [int(request.received_at.timestamp() // REPEAT_SECONDS)] if texts else []


Receipts = dict[UUID, list[AccountReceipt]]
"""The receipts that each callback brought, by the callback's id."""


class LogNote(NamedTuple):
    """What the log of callbacks says of one."""

    verdict: Verdict
    detail: str = ""


OUTDATED = LogNote(Verdict.NO_NEWS, "put off for a day")
"""The deliveries of all its receipts waited for as long as receipts are tried again."""


class _Batch:
    """What the callbacks of one batch contain."""

    def __init__(self, rows: Sequence[_StoredCallback]) -> None:
        """Read each callback by its account's provider."""
        self.rows = rows
        self.receipts: Receipts = defaultdict(list)
        self.by_provider_id: Receipts = defaultdict(list)
        """Receipts that name only the provider's own id."""
        self.inbound: list[ReceivedSms] = []
        self.verdicts = {row.id: LogNote(Verdict.NO_NEWS) for row in rows}
        known = ProviderAccount.objects.in_bulk({row.account_id for row in rows})
        accounts = {pk: _callback_account(row) for pk, row in known.items()}
        for row in rows:
            if account := accounts.get(row.account_id):
                items = _read(account, _request(account, row), row.id)
                if items is None:
                    self.verdicts[row.id] = LogNote(Verdict.UNREADABLE)
                for item in items or ():
                    self._add(account, row, item)

    def _add(
        self,
        account: CallbackAccount,
        row: _StoredCallback,
        item: DeliveryReceipt | InboundSms | UnknownCode,
    ) -> None:
        if isinstance(item, UnknownCode):
            self.verdicts[row.id] = LogNote(Verdict.UNKNOWN_CODE, item.code[:DETAIL_LIMIT])
        elif self.verdicts[row.id].verdict is Verdict.NO_NEWS:
            self.verdicts[row.id] = LogNote(Verdict.APPLIED)
        if isinstance(item, DeliveryReceipt):
            target = self.receipts if item.attempt_id else self.by_provider_id
            target[row.id].append(AccountReceipt(row.account_id, item))
        elif isinstance(item, UnknownCode):
            _count_unknown_code(account, row, item)
        else:
            sms = ReceivedSms(
                row.organization_id, row.account_id, item, row.received_at, str(row.id)
            )
            self.inbound.append(sms)

    def organizations_to_lock(self) -> set[str]:
        """Return the organizations whose gate lock is needed.

        All are locked at once and before any row of a delivery; another order could deadlock.
        """
        found = {sms.organization_id for sms in self.inbound}
        deciding = {
            callback_id
            for receipts_by_id in (self.receipts, self.by_provider_id)
            for callback_id, entries in receipts_by_id.items()
            if any(receipts.needs_gate_lock(entry.receipt) for entry in entries)
        }
        return found | {row.organization_id for row in self.rows if row.id in deciding}

    def notes(
        self, unknown: Collection[UUID], early: Collection[UUID], applied: Collection[UUID]
    ) -> dict[UUID, LogNote]:
        """Return what the log says of the callbacks that are not tried again.

        `unknown` are those that name no known message, `early` those of which a receipt was put
        off, and `applied` those of which one was not.
        """
        last = clock.now() - timedelta(days=RETRY_DAYS)
        found = {}
        for row in self.rows:
            if row.id in early and row.received_at > last:
                continue
            found[row.id] = self.verdicts[row.id]
            if found[row.id].verdict is Verdict.APPLIED and row.id in unknown:
                found[row.id] = LogNote(Verdict.UNKNOWN_ID)
            elif row.id in early and row.id not in applied:
                found[row.id] = OUTDATED
                log.warning("callback.outdated", callback=str(row.id), account_id=row.account_id)
        return found

    def resolve_provider_ids(self) -> set[UUID]:
        """Find the attempts of receipts that name a provider's own id.

        Return the callbacks whose id is unknown: the worker has not recorded it yet, or the message
        was sent by another system.
        """
        found = provider_references.find(
            {
                (entry.account_id, entry.receipt.provider_id)
                for entries in self.by_provider_id.values()
                for entry in entries
            }
        )
        unknown: set[UUID] = set()
        for callback_id, entries in self.by_provider_id.items():
            for account_id, receipt in entries:
                attempt_id = found.get((account_id, receipt.provider_id))
                if attempt_id is None:
                    unknown.add(callback_id)
                else:
                    resolved = replace(receipt, attempt_id=attempt_id)
                    self.receipts[callback_id].append(AccountReceipt(account_id, resolved))
        return unknown


def apply_due() -> tuple[int, list[KeywordReply]]:
    """Apply one batch; return the number of callbacks and the replies to send.

    The number of statements does not depend on the number of callbacks. Several workers may run
    this at once.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_DUE)
            rows = [_StoredCallback(*row) for row in cursor.fetchall()]
        if not rows:
            return 0, []
        batch = _Batch(rows)
        gate_lock.take_exclusive(batch.organizations_to_lock())
        unknown = batch.resolve_provider_ids()
        applied = receipts.apply_provider_receipts(batch.receipts)
        retried = {row.id for row in rows if row.id in unknown and row.tries < UNKNOWN_TRIES}
        early = applied.early | retried
        notes = batch.notes(unknown | applied.unknown, early, applied.applied)
        replies = inbound_sms.apply(batch.inbound)
        inbound = [UUID(sms.callback_id) for sms in batch.inbound]
        with connection.cursor() as cursor:
            verdicts = [each.verdict.value for each in notes.values()]
            details = [each.detail for each in notes.values()]
            done = [row.id for row in rows]
            cursor.execute(_DONE, [list(notes), verdicts, details, inbound, list(early), done])
    return len(rows), replies


def _request(account: CallbackAccount, row: _StoredCallback) -> CallbackRequest:
    """Return a stored callback as it arrived."""
    headers = orjson.loads(row.headers) if isinstance(row.headers, str) else row.headers
    return CallbackRequest(
        url=account.url,
        method=row.method,
        query=row.query,
        headers=headers if isinstance(headers, dict) else {},
        body=bytes(row.body),
        received_at=row.received_at,
    )


def _read(
    account: CallbackAccount, request: CallbackRequest, callback_id: UUID
) -> CallbackContent | None:
    """Read a callback. One that the provider cannot read is logged and must not stop the others:
    None.
    """
    try:
        return account.provider.read_callback(request)
    except Exception:
        log.exception("callback.unreadable", kind=account.provider.kind, callback=str(callback_id))
        return None


def _count_unknown_code(account: CallbackAccount, row: _StoredCallback, item: UnknownCode) -> None:
    """Count and log a code that the provider's tables lack, at the callback's first try only."""
    if row.tries:
        return
    kind = account.provider.kind
    unknown_codes.count(kind, item.code)
    log.warning("callback.unknown_code", kind=kind, code=item.code[:32], callback=str(row.id))


def purge() -> None:
    """Delete callbacks that were applied some days ago; of inbound SMS, the content only."""
    old = Q(received_at__lt=Now() - timedelta(days=STORED_DAYS))
    oldest = Q(received_at__lt=Now() - timedelta(days=INBOUND_STORED_DAYS))
    Callback.objects.filter(old & Q(is_inbound_sms=False) | oldest, due_at=None).delete()
    inbound = Callback.objects.filter(old, is_inbound_sms=True).exclude(query="", body=b"")
    inbound.update(query="", headers={}, body=b"")
