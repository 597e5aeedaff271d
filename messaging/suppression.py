"""Addresses and contacts that must not be written to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from messaging.models import Suppression
from rme.core import ids, sql
from rme.core.channels import ALL

_LISTED = f"""
SELECT channel, address, '' FROM {Suppression._meta.db_table}
WHERE organization_id = %s AND address = ANY(%s) AND NOT (address = '')
  AND (expires_at IS NULL OR expires_at > now())
UNION ALL
SELECT channel, '', contact_id FROM {Suppression._meta.db_table}
WHERE organization_id = %s AND contact_id = ANY(%s) AND NOT (contact_id = '')
  AND (expires_at IS NULL OR expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """What is listed of a set of addresses and contacts: pairs of channel (or ALL) and name."""

    addresses: frozenset[tuple[str, str]]
    contacts: frozenset[tuple[str, str]]

    def blocks(self, channel: str, address: str | None, contact_id: str) -> bool:
        """Say whether a contact must not be written to at an address on a channel."""
        if not self.contacts and not self.addresses:
            return False
        return bool(
            self.contacts & {(channel, contact_id), (ALL, contact_id)}
            or (address and self.addresses & {(channel, address), (ALL, address)})
        )


def listed(
    organization_id: str, addresses: Collection[str], contact_ids: Collection[str]
) -> Listed:
    """Find what is suppressed and has not expired, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            _LISTED,
            [organization_id, list(addresses), organization_id, list(contact_ids)],
        )
        rows = cursor.fetchall()
    return Listed(
        addresses=frozenset((channel, address) for channel, address, _ in rows if address),
        contacts=frozenset((channel, contact) for channel, _, contact in rows if contact),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """An address to suppress, and why."""

    organization_id: str
    channel: str
    address: str
    reason: str
    source: str


STRENGTH = ["COMPLAINT", "STOP", "HARD_BOUNCE"]
"""Reasons that take the place of a weaker one, the strongest first."""


def suppress(entries: Sequence[Entry]) -> None:
    """Put addresses on the list in one statement; a stronger reason replaces a weaker one."""
    if not entries:
        return
    table = Suppression._meta.db_table
    rows = {
        (entry.organization_id, entry.address, entry.channel): {
            "id": ids.new_id(),
            "organization_id": entry.organization_id,
            "channel": entry.channel,
            "address": entry.address,
            "contact_id": "",
            "reason": entry.reason,
            "note": "",
            "source": entry.source,
        }
        for entry in sorted(entries, key=lambda entry: -_strength(entry.reason))
    }
    columns = ", ".join(next(iter(rows.values())))
    strength = "coalesce(array_position(%s::text[], {}::text), 99)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) SELECT {columns} "
            f"FROM json_populate_recordset(NULL::{table}, %s) "
            "ON CONFLICT (organization_id, address, channel) WHERE NOT (address = '') "
            f"DO UPDATE SET reason = excluded.reason, source = excluded.source WHERE "
            f"{strength.format('excluded.reason')} < {strength.format(table + '.reason')}",
            [sql.as_json(list(rows.values())), STRENGTH, STRENGTH],
        )


def _strength(reason: str) -> int:
    return STRENGTH.index(reason) if reason in STRENGTH else len(STRENGTH)
