"""Facts that gates need besides suppressions and consent: pauses in force, and recent sends."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from messaging.domain.gates import Pauses, PauseScope
from messaging.models import Delivery, Pause
from messaging.store.lookups import is_to_contact
from rme.core import ids
from rme.core.db import sql

# Plan: the organizations' pauses, which are few.
# Run by: pauses_query, for pauses_in_force and store.gates.facts
PAUSES_IN_FORCE = f"""
SELECT organization_id, channel, category, template FROM {Pause._meta.db_table}
WHERE organization_id = ANY(%(organizations)s::text[]) AND (ends_at IS NULL OR ends_at > now())
"""
# Plan (BY_INDEX): delivery_by_contact in all partitions, a range of message ids for each contact.
# Run by: count_recent, for consent.gates.checks
COUNT_RECENT = f"""
SELECT w.organization_id, w.contact_id, w.category, w.test, recent.count
FROM json_to_recordset(%(contacts)s)
  w(organization_id text, contact_id text, category text, test boolean, least uuid),
LATERAL (
  SELECT count(*) FROM {Delivery._meta.db_table} d
  WHERE d.organization_id = w.organization_id AND {is_to_contact("d", "w.contact_id")}
    AND d.category = w.category AND d.test = w.test AND d.message_id >= w.least
    AND d.id <> ALL(%(excluded)s::uuid[])
    AND d.status = ANY(%(statuses)s::text[])) recent
"""


def pauses_query(organization_ids: Collection[str]) -> sql.Step:
    """Return the query for the pauses in force in organizations."""
    return sql.bind(PAUSES_IN_FORCE, {"organizations": sql.array(organization_ids)})


def pauses_in_force(organization_id: str) -> Pauses:
    """Return an organization's pauses; one query."""
    (rows,) = sql.read([pauses_query([organization_id])])
    return pauses_of(rows).get(organization_id, Pauses(()))


def pauses_of(rows: sql.Rows) -> dict[str, Pauses]:
    """Return the rows of `pauses_query` by organization, without those that have no pause."""
    scopes: defaultdict[str, list[PauseScope]] = defaultdict(list)
    for organization_id, *scope in rows:
        scopes[organization_id].append(PauseScope(*scope))
    return {organization_id: Pauses(ours) for organization_id, ours in scopes.items()}


class CappedContact(NamedTuple):
    """What a frequency cap counts by."""

    organization_id: str
    contact_id: str
    category: str
    test: bool
    """Whether it counts sends of TEST applications, which are separate."""


def count_recent(
    windows: Mapping[CappedContact, timedelta],
    statuses: Sequence[str],
    excluded: Collection[str],
) -> dict[CappedContact, int]:
    """Count the deliveries to contacts within their windows; two statements.

    `excluded` are ids of deliveries that do not count.
    """
    ((now,),) = sql.fetch("SELECT now()")
    rows = [
        {**contact._asdict(), "least": ids.at_least(now - window)}
        for contact, window in windows.items()
    ]
    rows_by_contact = sql.read_in_order(
        COUNT_RECENT,
        {
            "contacts": sql.as_json(rows),
            "excluded": sql.array(excluded),
            "statuses": sql.array(statuses),
        },
    )
    return {CappedContact(*contact): count for *contact, count in rows_by_contact}
