"""Recipients' objections by address: each applies to every contact with the address.

The ledger writes them, with the entry of the contact whose mail the recipient objected to.
"""

from collections.abc import Collection

from messaging.domain.channels import ALL
from messaging.models import AddressOptOut
from messaging.store.gates.subjects import Subjects
from rme.core.db import sql

# One look-up for each address, as in `active_suppressions`: ORDER BY leaves one index.
# Plan (BY_GENERIC_PLAN): address_opt_out_once, a range for each address.
# Run by: query, for store.gates.facts and store.gates.current_consent
OF_ADDRESSES = f"""
SELECT wanted.organization_id, found.*
FROM unnest(%(organizations)s::text[], %(addresses)s::text[]) wanted(organization_id, addresses),
unnest(wanted.addresses::text[]) given(address),
LATERAL (
  SELECT address, channel, category, extract(epoch FROM occurred_at)::float8, entry::text
  FROM {AddressOptOut._meta.db_table}
  WHERE organization_id = wanted.organization_id AND address = given.address
    AND category = ANY(%(categories)s::text[])
  ORDER BY channel, category OFFSET 0) found
"""


def query(asked: Subjects, categories: Collection[str]) -> sql.Step:
    """Return the query for the objections by addresses of each organization."""
    values = {
        "organizations": asked.organizations,
        "addresses": asked.addresses,
        "categories": sql.array([*categories, ALL]),
    }
    return sql.bind(OF_ADDRESSES, values, sql.BY_GENERIC_PLAN)
