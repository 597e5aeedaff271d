"""Which addresses and contacts are suppressed: entries of the list that have not expired."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from messaging.models import Suppression
from rme.core.channels import ALL
from rme.core.db import sql

_TABLE = Suppression._meta.db_table

# One look-up for each address and contact: OFFSET keeps the order of the joins, and a comparison
# with an array would be a filter on all entries of the organization where statistics are old.
# ORDER BY leaves one index, as no other has the channels of an address or contact in order.
_ACTIVE = f"""
SELECT wanted.organization_id, active.*
FROM unnest(%s::text[], %s::text[], %s::text[]) wanted(organization_id, addresses, contact_ids),
LATERAL (
  SELECT found.*
  FROM unnest(wanted.addresses::text[]) given(address), LATERAL (
    SELECT channel, address, '' AS contact_id, id::text FROM {_TABLE}
    WHERE organization_id = wanted.organization_id
      AND address = given.address AND NOT (address = '')
      AND (expires_at IS NULL OR expires_at > now()) ORDER BY channel OFFSET 0) found
  UNION ALL
  SELECT found.*
  FROM unnest(wanted.contact_ids::text[]) given(contact_id), LATERAL (
    SELECT channel, '', contact_id, id::text FROM {_TABLE}
    WHERE organization_id = wanted.organization_id
      AND contact_id = given.contact_id AND NOT (contact_id = '')
      AND (expires_at IS NULL OR expires_at > now()) ORDER BY channel OFFSET 0) found
  OFFSET 0) active
"""


@dataclass(frozen=True, slots=True)
class ActiveSuppressions:
    """Entry ids of one organization, by channel (or ALL) and address or contact."""

    addresses: dict[tuple[str, str], str]
    contacts: dict[tuple[str, str], str]

    def entry(self, channel: str, address: str | None, contact_id: str) -> str | None:
        """Return the id of the entry that suppresses a contact or its address, or None."""
        if not self.contacts and not self.addresses:  # most have no entry at all
            return None
        by_contact = self.contacts.get((channel, contact_id)) or self.contacts.get(
            (ALL, contact_id)
        )
        if by_contact or not address:
            return by_contact
        return self.addresses.get((channel, address)) or self.addresses.get((ALL, address))


def read(
    organization_id: str, addresses: Collection[str], contact_ids: Collection[str]
) -> ActiveSuppressions:
    """Return the suppressions of addresses and contacts; one query."""
    (rows,) = sql.read([query({organization_id: addresses}, {organization_id: contact_ids})])
    return parse(rows)[organization_id]


def query(
    addresses: Mapping[str, Collection[str]], contact_ids: Mapping[str, Collection[str]]
) -> sql.Step:
    """Return the query for the suppressions of addresses and contacts, given by organization.

    Both mappings must answer for each organization of `contact_ids`.
    """
    return sql.Step(
        _ACTIVE,
        [
            sql.array(contact_ids),
            sql.arrays(addresses[each] for each in contact_ids),
            sql.arrays(contact_ids.values()),
        ],
        sql.BY_GENERIC_PLAN,
    )


def parse(rows: sql.Rows) -> defaultdict[str, ActiveSuppressions]:
    """Return the rows of `query` by organization."""
    found: defaultdict[str, ActiveSuppressions] = defaultdict(lambda: ActiveSuppressions({}, {}))
    for organization_id, channel, address, contact_id, entry in rows:
        suppressions = found[organization_id]
        if address:
            suppressions.addresses[channel, address] = entry
        else:
            suppressions.contacts[channel, contact_id] = entry
    return found
