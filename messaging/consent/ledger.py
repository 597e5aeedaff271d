"""The consent ledger: recording what people decided, and what it means for a send.

Every line holds the digest of the organization's line before it. The digest covers the line in two
parts: who decided and how that is known (the person's part) enters as a digest of its own, the
seal. Erasing a person leaves the seal in place of that part, so that the chain stays verifiable.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import orjson
from django.db import connection, transaction

from messaging.consent import gate_lock
from messaging.models import ConsentEntry
from rme.core import ids
from rme.core.db import sql

OPTED_IN, OPTED_OUT = "OPTED_IN", "OPTED_OUT"


@dataclass(frozen=True, slots=True)
class ConsentDecision:
    """What one person decided. `evidence` says how it is known; without `occurred_at` it is now."""

    contact_id: str
    channel: str
    category: str
    status: str
    source: str
    occurred_at: datetime | None
    evidence: Mapping[str, str] = field(default_factory=dict)
    recorded_by: str = ""


_SAID = (
    "id",
    "organization_id",
    "channel",
    "category",
    "status",
    "source",
    "occurred_at",
    "recorded_at",
    "recorded_by",
)
_ERASED = "erased"
"""The evidence of an erased line has this one key: the seal of what stood there."""


def _seal(contact_id: str, evidence: object) -> str:
    """Digest what a line says of a person."""
    return hashlib.sha256(orjson.dumps([contact_id, _texts(evidence)])).hexdigest()


def _texts(evidence: object) -> object:
    """Bring evidence into the form that JSON gives back unchanged: pairs of texts, in order."""
    if isinstance(evidence, Mapping):
        return sorted([str(name), str(value)] for name, value in evidence.items())
    return str(evidence)


def _digest(previous: str, row: sql.Row, seal: str) -> str:
    """Chain a line of the ledger to the one before it (SHA-256 over both)."""
    said = {name: row[name] for name in _SAID}
    line = orjson.dumps({**said, "seal": seal}, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)
    return hashlib.sha256(previous.encode() + line).hexdigest()


def record(organization_id: str, decisions: Sequence[ConsentDecision]) -> list[str]:
    """Append decisions to the ledger, in order, and give the new entries' ids."""
    return [str(row["id"]) for row in append(organization_id, decisions)]


def append(organization_id: str, decisions: Sequence[ConsentDecision]) -> list[sql.Row]:
    """Append decisions to the ledger, in order, and give the new rows.

    A lock per organization keeps the chain of digests single; the number of statements does not
    depend on how many decisions there are. Nothing has occurred after it was recorded: a time
    ahead is taken for now, or no later objection would be heard.
    """
    if not decisions:
        return []
    with transaction.atomic():
        now = _hold_chain(organization_id)
        newest = ConsentEntry.objects.filter(organization_id=organization_id).order_by("-id")
        last, previous = newest.values_list("id", "digest").first() or (UUID(int=0), "")
        rows: list[sql.Row] = []
        for decision in decisions:
            # The order of ids is the chain's, whatever the clocks of several machines say.
            last = UUID(int=max(ids.new_id().int, last.int + 1))
            evidence = {str(name): str(value) for name, value in decision.evidence.items()}
            row = {
                "id": str(last),
                "organization_id": organization_id,
                "contact_id": decision.contact_id,
                "channel": decision.channel,
                "category": decision.category,
                "status": decision.status,
                "source": decision.source,
                "evidence": evidence,
                "occurred_at": min(decision.occurred_at or now, now).astimezone(UTC),
                "recorded_at": now,
                "recorded_by": decision.recorded_by,
            }
            digest = _digest(previous, row, _seal(decision.contact_id, evidence))
            rows.append({**row, "previous": previous, "digest": digest})
            previous = digest
        sql.insert({ConsentEntry: rows})
    return rows


def _hold_chain(organization_id: str) -> datetime:
    """Hold the organization's chain until the transaction ends; give the time from then on."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)), clock_timestamp()",
            [gate_lock.lock_name(organization_id)],
        )
        now: datetime = cursor.fetchone()[1]
    return now.astimezone(UTC)


def erase(organization_id: str, contact_id: str) -> int:
    """Erase who decided and all evidence from a contact's lines; give how many lines there were.

    What was decided, when, and the seal stay, so `verify` still holds. Two statements.
    """
    with transaction.atomic():
        _hold_chain(organization_id)
        lines = ConsentEntry.objects.filter(organization_id=organization_id, contact_id=contact_id)
        rows = [
            {"id": id_, "contact_id": "", "evidence": {_ERASED: _seal(contact_id, evidence)}}
            for id_, evidence in lines.values_list("id", "evidence")
        ]
        sql.update(ConsentEntry, rows)
    return len(rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What walking a chain found. `head` is the digest of the last line that fits."""

    lines: int
    erased: int
    head: str
    broken: UUID | None
    """The first line that does not fit."""


VERIFY_BATCH = 1000


def verify(organization_id: str) -> Verdict:
    """Walk an organization's chain, in batches, up to the first line that does not fit.

    Lines cut off at the end cannot be missed from within: compare `head` with one kept elsewhere.
    """
    chain = ConsentEntry.objects.filter(organization_id=organization_id).order_by("id")
    lines, erased, head, last = 0, 0, "", UUID(int=0)
    while batch := chain.filter(id__gt=last).values()[:VERIFY_BATCH]:
        for line in batch:
            gone = _is_erased(line)
            if line["previous"] != head or line["digest"] != _expected(head, line, gone=gone):
                return Verdict(lines, erased, head, line["id"])
            lines, erased, head, last = lines + 1, erased + gone, line["digest"], line["id"]
    return Verdict(lines, erased, head, None)


def _is_erased(line: sql.Row) -> bool:
    evidence = line["evidence"]
    return line["contact_id"] == "" and isinstance(evidence, dict) and [*evidence] == [_ERASED]


def _expected(previous: str, line: sql.Row, *, gone: bool) -> str:
    """Compute the digest that a stored line must have."""
    evidence = line["evidence"]
    seal = str(evidence[_ERASED]) if gone else _seal(line["contact_id"], evidence)
    times = {name: line[name].astimezone(UTC) for name in ("occurred_at", "recorded_at")}
    return _digest(previous, {**line, **times, "id": str(line["id"])}, seal)
