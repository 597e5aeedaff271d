"""The entries of the consent ledger that are in force for contacts, and their permissions.

A recipient's objection applies to every contact with the address: it counts as an entry of each.
"""

from collections import defaultdict
from collections.abc import Collection

from messaging.domain.channels import ALL
from messaging.domain.gates import (
    OPTED_OUT,
    AddressLevel,
    ConsentState,
    CurrentConsent,
    Level,
)
from messaging.models import ConsentEntry, ConsentEntryInTest
from messaging.store.gates import address_opt_outs, subjects
from messaging.store.gates.subjects import Subjects
from rme.core.addresses import phone_spellings
from rme.core.db import sql

# Of several entries of one instant OPTED_OUT counts: it sorts after OPTED_IN, and the order is
# descending.
# One look-up for each contact: a comparison with an array would be a filter on all entries
# of the organization where statistics are old. The inner ORDER BY leaves one index, as no other
# has the entries of a contact in that order.
_NEWEST = """
SELECT wanted.organization_id, newest.*
FROM unnest(%(organizations)s::text[], %(contacts)s::text[]) wanted(organization_id, contact_ids),
unnest(wanted.contact_ids::text[]) given(contact_id),
LATERAL (
  SELECT DISTINCT ON (channel, category)
    contact_id, channel, category, status, extract(epoch FROM occurred_at)::float8, id::text
  FROM (
    SELECT contact_id, channel, category, status, occurred_at, id
    FROM {0}
    WHERE organization_id = wanted.organization_id AND contact_id = given.contact_id
      AND channel = ANY(%(channels)s::text[]) AND category = ANY(%(categories)s::text[])
    ORDER BY channel, category, occurred_at DESC OFFSET 0) known
  ORDER BY channel, category, occurred_at DESC, status DESC) newest
"""
# Plan (BY_GENERIC_PLAN): consent_of_contact, a range for each contact.
# Run by: query, for read and store.gates.facts
NEWEST = {
    is_test: _NEWEST.format(model._meta.db_table)
    for is_test, model in ((False, ConsentEntry), (True, ConsentEntryInTest))
}
"""The query of each layer."""


def read(
    organization_id: str,
    contact_ids: Collection[str],
    channels: Collection[str],
    categories: Collection[str],
    addresses: Collection[str] = (),
    *,
    test: bool = False,
) -> CurrentConsent:
    """Return the current consent of contacts on channels and in categories; one query.

    Objections of `addresses` count, too. `test`: only return the consent of the TEST layer.
    """
    asked = subjects.of({organization_id: contact_ids}, {organization_id: addresses})
    entries, objections = sql.read(
        [
            query(asked, channels, categories, test=test),
            address_opt_outs.query(asked, categories),
        ]
    )
    return parse(entries, objections)[organization_id]


def query(
    asked: Subjects,
    channels: Collection[str],
    categories: Collection[str],
    *,
    test: bool = False,
) -> sql.Step:
    """Return the query for the current consent of each organization's contacts.

    `test`: query the TEST layer.
    """
    return sql.bind(
        NEWEST[test],
        {
            "organizations": asked.organizations,
            "contacts": asked.contacts,
            "channels": sql.array([*channels, ALL]),
            "categories": sql.array([*categories, ALL]),
        },
        sql.BY_GENERIC_PLAN,
    )


def _none() -> CurrentConsent:
    return CurrentConsent({}, spell=phone_spellings)


def parse(entries: sql.Rows, objections: sql.Rows) -> defaultdict[str, CurrentConsent]:
    """Return the rows of `query` and of `address_opt_outs.query` by organization."""
    by_organization: defaultdict[str, CurrentConsent] = defaultdict(_none)
    for organization_id, contact_id, channel, category, *state in entries:
        by_organization[organization_id].states[Level(contact_id, channel, category)] = (
            ConsentState(*state)
        )
    for organization_id, address, channel, category, at, entry in objections:
        level = AddressLevel(address, channel, category)
        by_organization[organization_id].objections[level] = ConsentState(OPTED_OUT, at, entry)
    return by_organization
