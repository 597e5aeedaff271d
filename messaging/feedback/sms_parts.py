"""Long inbound SMS: joining the parts that a provider delivers one by one.

Parts come in any order and may be repeated. An SMS that is not complete after a day is dropped;
the callbacks that brought its parts are stored for some days more.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import orjson
import structlog

from messaging.models import InboundSmsParts
from rme.core.db import clock
from rme.core.provider import InboundSms, SmsPart

log = structlog.get_logger(__name__)

STORED_DAYS = 1
_UPDATED = ("texts", "complete", "received_at")


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
    digests = [
        _digest(inbound, inbound.sms.part) if inbound.sms.part else "" for inbound in received
    ]
    part_digests = set(digests) - {""}
    if not part_digests:
        return list(received)
    parts_by_digest = {
        row.digest: _Parts(row.texts, row.complete)
        for row in InboundSmsParts.objects.filter(pk__in=part_digests)
    }
    complete: list[ReceivedSms] = []
    changed: dict[str, InboundSmsParts] = {}
    for digest, inbound in zip(digests, received, strict=True):
        part = inbound.sms.part
        if part is None:
            complete.append(inbound)
            continue
        parts = parts_by_digest.setdefault(digest, _Parts())
        text = parts.add(part, inbound.sms.text)
        if text is not None:
            complete.append(replace(inbound, sms=replace(inbound.sms, text=text, part=None)))
        changed[digest] = _row(digest, inbound, parts)
    InboundSmsParts.objects.bulk_create(
        changed.values(), update_conflicts=True, unique_fields=["digest"], update_fields=_UPDATED
    )
    return complete


def _digest(received: ReceivedSms, part: SmsPart) -> str:
    """Return the key of a long SMS: the account, both numbers, the reference and the total."""
    sms = received.sms
    name = [received.account_id, sms.sender, sms.to, part.reference, part.total]
    return hashlib.sha256(orjson.dumps(name)).hexdigest()


def _row(digest: str, received: ReceivedSms, parts: _Parts) -> InboundSmsParts:
    return InboundSmsParts(
        digest=digest,
        account_id=received.account_id,
        texts=parts.texts,
        complete=parts.complete,
        received_at=received.received_at,
    )


def purge() -> None:
    """Delete parts that are a day old, and log how many SMS never became complete."""
    until = clock.now() - timedelta(days=STORED_DAYS)
    old = InboundSmsParts.objects.filter(received_at__lt=until)
    incomplete = Counter(old.filter(complete=False).values_list("account_id", flat=True))
    old.delete()
    for account_id, count in sorted(incomplete.items()):
        log.warning("inbound_sms.incomplete", account_id=account_id, count=count)
