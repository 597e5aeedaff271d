"""The consent ledger: recording what people decided, and what it means for a send."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson
from django.db import connection, transaction

from messaging.models import ConsentEntry
from rme.core import ids, sql
from rme.core.channels import ALL

OPTED_IN, OPTED_OUT = "OPTED_IN", "OPTED_OUT"

_PRESENT = f"""
SELECT DISTINCT ON (contact_id, channel, category)
  contact_id, channel, category, status, occurred_at
FROM {ConsentEntry._meta.db_table}
WHERE organization_id = %s AND contact_id = ANY(%s) AND channel = ANY(%s) AND category = ANY(%s)
ORDER BY contact_id, channel, category, occurred_at DESC, status DESC
"""
# Of entries of one instant OPTED_OUT comes first: it sorts after OPTED_IN, and the order is down.


@dataclass(frozen=True, slots=True)
class Present:
    """The present state of each (contact, channel, category), wildcards as they were given."""

    states: Mapping[tuple[str, str, str], tuple[str, datetime]]

    def allows(self, contact_id: str, channel: str, category: str, *, opt_in: bool) -> bool:
        """Say whether a contact may be written to.

        The most specific level decides (fewest wildcards), and there the newest, a tie against
        sending. But an OPTED_OUT newer than the deciding OPTED_IN blocks at whatever level it
        stands. Without any entry, `opt_in` categories are blocked and others allowed.
        """
        if not self.states:
            return not opt_in
        levels = [
            [(channel, category)],
            [(channel, ALL), (ALL, category)],
            [(ALL, ALL)],
        ]
        found = [
            [entry for pair in level if (entry := self.states.get((contact_id, *pair)))]
            for level in levels
        ]
        deciding = next((level for level in found if level), None)
        if deciding is None:
            return not opt_in
        status, at = max(deciding, key=lambda entry: (entry[1], entry[0] == OPTED_OUT))
        objections = (when for level in found for what, when in level if what == OPTED_OUT)
        return status == OPTED_IN and not any(when > at for when in objections)


def present(
    organization_id: str,
    contact_ids: Collection[str],
    channels: Collection[str],
    categories: Collection[str],
) -> Present:
    """Read the present state for contacts, channels and categories in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            _PRESENT,
            [organization_id, list(contact_ids), [*channels, ALL], [*categories, ALL]],
        )
        return Present({tuple(row[:3]): (row[3], row[4]) for row in cursor.fetchall()})


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person decided. `evidence` says how it is known."""

    contact_id: str
    channel: str
    category: str
    status: str
    source: str
    occurred_at: datetime
    evidence: Mapping[str, str] = field(default_factory=dict)
    recorded_by: str = ""


def _digest(previous: str, row: Mapping[str, object]) -> str:
    """Chain a line of the ledger to the one before it (SHA-256 over both)."""
    line = orjson.dumps(row, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)
    return hashlib.sha256(previous.encode() + line).hexdigest()


def record(organization_id: str, decisions: Sequence[Decision]) -> list[str]:
    """Append decisions to the ledger, in order, and give the new entries' ids.

    A lock per organization keeps the chain of digests single; the number of statements does not
    depend on how many decisions there are.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"consent:{organization_id}"],
        )
        newest = ConsentEntry.objects.filter(organization_id=organization_id).order_by("-id")
        previous = newest.values_list("digest", flat=True).first() or ""
        rows = []
        for decision in decisions:
            row = {
                "id": ids.new_text_id(),
                "organization_id": organization_id,
                "contact_id": decision.contact_id,
                "channel": decision.channel,
                "category": decision.category,
                "status": decision.status,
                "source": decision.source,
                "evidence": dict(decision.evidence),
                "occurred_at": decision.occurred_at.astimezone(UTC),
                "recorded_by": decision.recorded_by,
            }
            digest = _digest(previous, row)
            rows.append({**row, "previous": previous, "digest": digest})
            previous = digest
        sql.insert({ConsentEntry: rows})
    return [str(row["id"]) for row in rows]
