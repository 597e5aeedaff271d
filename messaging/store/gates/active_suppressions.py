"""Which addresses and contacts are suppressed: entries of the list that have not expired."""

from collections import defaultdict
from collections.abc import Collection

from messaging.domain.gates import ActiveSuppressions
from messaging.models import Suppression, SuppressionInTest
from messaging.store.gates import subjects
from messaging.store.gates.subjects import Subjects
from rme.core.addresses import phone_spellings
from rme.core.db import sql

# One look-up for each address and contact: OFFSET keeps the order of the joins, and a comparison
# with an array would be a filter on all entries of the organization where statistics are old.
# ORDER BY leaves one index, as no other has the channels of an address or contact in order.
_ACTIVE = """
SELECT wanted.organization_id, active.*
FROM unnest(%(organizations)s::text[], %(addresses)s::text[], %(contacts)s::text[])
  wanted(organization_id, addresses, contact_ids),
LATERAL (
  SELECT found.*
  FROM unnest(wanted.addresses::text[]) given(address), LATERAL (
    SELECT channel, address, '' AS contact_id, id::text FROM {0}
    WHERE organization_id = wanted.organization_id
      AND address = given.address AND NOT (address = '')
      AND (expires_at IS NULL OR expires_at > now()) ORDER BY channel OFFSET 0) found
  UNION ALL
  SELECT found.*
  FROM unnest(wanted.contact_ids::text[]) given(contact_id), LATERAL (
    SELECT channel, '', contact_id, id::text FROM {0}
    WHERE organization_id = wanted.organization_id
      AND contact_id = given.contact_id AND NOT (contact_id = '')
      AND (expires_at IS NULL OR expires_at > now()) ORDER BY channel OFFSET 0) found
  OFFSET 0) active
"""
# Plan (BY_GENERIC_PLAN): the two unique indexes, once for each address and contact.
# Run by: query, for read and store.gates.facts
ACTIVE = {
    is_test: _ACTIVE.format(model._meta.db_table)
    for is_test, model in ((False, Suppression), (True, SuppressionInTest))
}
"""The query of each layer."""


def read(
    organization_id: str, addresses: Collection[str], contact_ids: Collection[str]
) -> ActiveSuppressions:
    """Return the suppressions of addresses and contacts; one query."""
    asked = subjects.of({organization_id: contact_ids}, {organization_id: addresses})
    (rows,) = sql.read([query(asked)])
    return parse(rows)[organization_id]


def query(asked: Subjects, *, test: bool = False) -> sql.Step:
    """Return the query for the suppressions of addresses and contacts. `test`: query the TEST
    layer.
    """
    return sql.bind(ACTIVE[test], asked._asdict(), sql.BY_GENERIC_PLAN)


def _none() -> ActiveSuppressions:
    return ActiveSuppressions({}, {}, phone_spellings)


def parse(rows: sql.Rows) -> defaultdict[str, ActiveSuppressions]:
    """Return the rows of `query` by organization."""
    by_organization: defaultdict[str, ActiveSuppressions] = defaultdict(_none)
    for organization_id, channel, address, contact_id, entry in rows:
        suppressions = by_organization[organization_id]
        if address:
            suppressions.addresses[channel, address] = entry
        else:
            suppressions.contacts[channel, contact_id] = entry
    return by_organization
