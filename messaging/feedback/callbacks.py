"""Provider callbacks: stored as they arrive, and applied in batches.

A callback is answered once it is in the database, and read later. If the task that reads it is
lost, that costs seconds. A callback may be repeated, late, or earlier than the record that the
message left: the final state is the same.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import orjson
import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from messaging.consent import gate_lock, keywords
from messaging.consent.keywords import Word
from messaging.domain.channels import Channel
from messaging.feedback import inbound_sms, receipts
from messaging.feedback.inbound_sms import KeywordReply
from messaging.feedback.receipts import AccountReceipt
from messaging.feedback.sms_parts import ReceivedSms
from messaging.models import Callback, ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from messaging.store.feedback import callbacks as stored
from messaging.store.feedback import references
from messaging.store.feedback.callbacks import LogNote, NewCallback, StoredCallback, Verdict
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import availability, clock
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    InboundSms,
    Provider,
    UnknownCode,
)

log = structlog.get_logger(__name__)

STORED_DAYS = 7
INBOUND_STORED_DAYS = 400
"""How long the digest of an inbound SMS stays, so that a repeated callback is recognized."""
REPEAT_SECONDS = 600
"""An inbound SMS without an id counts as repeated only in the same span of this length."""
UNKNOWN_TRIES = 9
"""How often a receipt is tried whose message is not found, over eight minutes; then it is unknown.
An account may be shared with other systems, whose receipts come to us too."""
DETAIL_LIMIT = 32
_HEADERS = ("content-type", "user-agent")
"""The headers to store. The signature was checked, and other headers may hold secrets."""
_SECRET = re.compile(r"(?<![^&])key=[^&]*")


@dataclass(frozen=True, slots=True)
class CallbackAccount:
    """A provider account that receives callbacks. `url` is its callback URL."""

    account_id: int
    organization_id: str
    url: str
    provider: Provider


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

    It also notes those that came before. If it raises what `organizations.require_served` raises,
    nothing is stored.
    """
    new = [_new_callback(account, request) for request in requests]
    return bool(stored.store(account.organization_id, account.account_id, new))


def _new_callback(account: CallbackAccount, request: CallbackRequest) -> NewCallback:
    callback_id = ids.new_id()
    call = [account.account_id, request.method, request.query]
    call += _distinction(account, request, callback_id)
    headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
    return NewCallback(
        callback_id,
        hashlib.sha256(orjson.dumps(call) + request.body).hexdigest(),
        request.method,
        _SECRET.sub("key=", request.query),
        orjson.dumps(headers).decode(),
        request.body,
        request.received_at,
    )


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
    texts = [item for item in items if isinstance(item, InboundSms) and not item.id]
    keyword_matches = [keywords.find(item.text, item.taken_as) for item in texts]
    if any(keyword and keyword.word is Word.STOP for keyword in keyword_matches):
        return [str(callback_id)]
    return [int(request.received_at.timestamp() // REPEAT_SECONDS)] if texts else []


Receipts = dict[UUID, list[AccountReceipt]]
"""The receipts that each callback brought, by the callback's id."""


OUTDATED = LogNote(Verdict.NO_NEWS, "put off for a day")
"""The deliveries of all its receipts waited for as long as receipts are tried again."""


class _Batch:
    """What the callbacks of one batch contain."""

    def __init__(self, rows: Sequence[StoredCallback]) -> None:
        """Read each callback by its account's provider."""
        self.rows = rows
        self.receipts: Receipts = defaultdict(list)
        self.by_provider_id: Receipts = defaultdict(list)
        """Receipts that name only the provider's own id."""
        self.inbound: list[ReceivedSms] = []
        self.verdicts = {row.id: LogNote(Verdict.NO_NEWS) for row in rows}
        account_rows = ProviderAccount.objects.in_bulk({row.account_id for row in rows})
        accounts = {pk: _callback_account(row) for pk, row in account_rows.items()}
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
        row: StoredCallback,
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
        of_inbound = {sms.organization_id for sms in self.inbound}
        deciding = {
            callback_id
            for receipts_by_id in (self.receipts, self.by_provider_id)
            for callback_id, entries in receipts_by_id.items()
            if any(receipts.needs_gate_lock(entry.receipt) for entry in entries)
        }
        return of_inbound | {row.organization_id for row in self.rows if row.id in deciding}

    def notes(
        self, unknown: Collection[UUID], early: Collection[UUID], applied: Collection[UUID]
    ) -> dict[UUID, LogNote]:
        """Return what the log says of the callbacks that are not tried again.

        `unknown` name no known message, `early` have a receipt that was put off, and `applied` have
        one that was not.
        """
        last = clock.now() - timedelta(days=stored.RETRY_DAYS)
        notes = {}
        for row in self.rows:
            if row.id in early and row.received_at > last:
                continue
            notes[row.id] = self.verdicts[row.id]
            if notes[row.id].verdict is Verdict.APPLIED and row.id in unknown:
                notes[row.id] = LogNote(Verdict.UNKNOWN_ID)
            elif row.id in early and row.id not in applied:
                notes[row.id] = OUTDATED
                log.warning("callback.outdated", callback=str(row.id), account_id=row.account_id)
        return notes

    def resolve_provider_ids(self) -> set[UUID]:
        """Find the attempts of receipts that name a provider's own id.

        Return the callbacks whose id is unknown: the worker has not recorded it yet, or the message
        was sent by another system.
        """
        attempt_ids = references.find(
            {
                (entry.account_id, reference)
                for entries in self.by_provider_id.values()
                for entry in entries
                for reference in (entry.receipt.provider_id, entry.receipt.former_provider_id)
                if reference
            }
        )
        unknown: set[UUID] = set()
        for callback_id, entries in self.by_provider_id.items():
            for account_id, receipt in entries:
                attempt_id = attempt_ids.get((account_id, receipt.provider_id)) or attempt_ids.get(
                    (account_id, receipt.former_provider_id)
                )
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
        rows = stored.lock_due()
        return len(rows), _apply(rows)


def apply_next() -> tuple[int, list[KeywordReply]]:
    """Apply one callback, after a batch has failed; return what `apply_due` returns.

    A callback that makes our code fail is put off, so that it stops no other.
    """
    with transaction.atomic():
        rows = stored.lock_due(1)
        try:
            with transaction.atomic():
                return len(rows), _apply(rows)
        except MemoryError:  # of the process, not of this callback
            raise
        except Exception as error:
            if not is_defect(error):
                raise
            (row,) = rows
            log.exception("callback.failed", callback=str(row.id), account_id=row.account_id)
            is_last = row.received_at <= clock.now() - timedelta(days=stored.RETRY_DAYS)
            notes = {row.id: LogNote(Verdict.UNREADABLE)} if is_last else {}
            stored.finish(rows, notes, early={row.id}, inbound=())
            return 1, []


def is_defect(error: Exception) -> bool:
    """Return whether what was applied caused an error, not the database or a time limit."""
    return not isinstance(error, SoftTimeLimitExceeded) and not availability.is_unavailable(error)


def _apply(rows: Sequence[StoredCallback]) -> list[KeywordReply]:
    """Apply locked callbacks, and return the replies to send."""
    if not rows:
        return []
    batch = _Batch(rows)
    gate_lock.take_exclusive(batch.organizations_to_lock())
    unknown = batch.resolve_provider_ids()
    applied = receipts.apply_provider_receipts(batch.receipts)
    unknown_ids = unknown | applied.missing
    retried = {row.id for row in rows if row.id in unknown_ids and row.tries < UNKNOWN_TRIES}
    early = applied.early | retried
    notes = batch.notes(unknown | applied.unknown, early, applied.applied)
    replies = inbound_sms.apply(batch.inbound)
    inbound = [UUID(sms.callback_id) for sms in batch.inbound]
    stored.finish(rows, notes, early=early, inbound=inbound)
    return replies


def _request(account: CallbackAccount, row: StoredCallback) -> CallbackRequest:
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
    except MemoryError:  # of the process, not of this one
        raise
    except Exception:
        log.exception("callback.unreadable", kind=account.provider.kind, callback=str(callback_id))
        return None


def _count_unknown_code(account: CallbackAccount, row: StoredCallback, item: UnknownCode) -> None:
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
