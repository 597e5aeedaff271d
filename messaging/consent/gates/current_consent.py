"""Which entries of the consent ledger are in force for contacts, and what they permit."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from messaging.models import ConsentEntry
from rme.core.channels import ALL
from rme.core.db import sql

_OPTED_IN, _OPTED_OUT = ConsentEntry.Status.OPTED_IN.value, ConsentEntry.Status.OPTED_OUT.value

# Of several entries of one instant OPTED_OUT counts: it sorts after OPTED_IN, and the order is
# descending.
# One look-up for each contact: a comparison with an array would be a filter on all entries
# of the organization where statistics are old. The inner ORDER BY leaves one index, as no other
# has the entries of a contact in that order.
_NEWEST = f"""
SELECT wanted.organization_id, newest.*
FROM unnest(%s::text[], %s::text[]) wanted(organization_id, contact_ids),
unnest(wanted.contact_ids::text[]) given(contact_id),
LATERAL (
  SELECT DISTINCT ON (channel, category)
    contact_id, channel, category, status, extract(epoch FROM occurred_at)::float8, id::text
  FROM (
    SELECT contact_id, channel, category, status, occurred_at, id
    FROM {ConsentEntry._meta.db_table}
    WHERE organization_id = wanted.organization_id AND contact_id = given.contact_id
      AND channel = ANY(%s::text[]) AND category = ANY(%s::text[])
    ORDER BY channel, category, occurred_at DESC OFFSET 0) known
  ORDER BY channel, category, occurred_at DESC, status DESC) newest
"""


class Level(NamedTuple):
    """What a consent entry is about. Channel and category may be ALL."""

    contact_id: str
    channel: str
    category: str


class ConsentState(NamedTuple):
    """The newest decision on one level."""

    status: str
    at: float
    """Seconds since 1970."""
    entry: str
    """The id of the ledger entry."""


class ConsentPermission(NamedTuple):
    """Whether a contact may be written to, and the entry that decides; None: the regime does."""

    allowed: bool
    entry: str | None = None


_BY_REGIME = {False: ConsentPermission(True), True: ConsentPermission(False)}
"""The permission without any entry, by whether contacts have to opt in."""


@dataclass(frozen=True, slots=True)
class CurrentConsent:
    """The newest decision of each level of one organization's contacts."""

    states: dict[Level, ConsentState]

    def permission(
        self, contact_id: str, channel: str, category: str, *, opt_in: bool
    ) -> ConsentPermission:
        """Return whether a contact may be written to, and the entry that decides.

        The most specific level decides (fewest wildcards), and there the newest entry; a tie goes
        against sending. But an OPTED_OUT newer than the deciding OPTED_IN blocks on any level.
        Without an entry, `opt_in` categories are blocked and others allowed.
        """
        if not self.states:  # most contacts have no entry, and this runs for every delivery
            return _BY_REGIME[opt_in]
        levels = [
            [(channel, category)],
            [(channel, ALL), (ALL, category)],
            [(ALL, ALL)],
        ]
        found = [
            [state for pair in level if (state := self.states.get(Level(contact_id, *pair)))]
            for level in levels
        ]
        deciding = next((level for level in found if level), None)
        if deciding is None:
            return _BY_REGIME[opt_in]
        state = max(deciding, key=lambda each: (each.at, each.status == _OPTED_OUT))
        objections = (each for level in found for each in level if each.status == _OPTED_OUT)
        objection = next((each for each in objections if each.at > state.at), None)
        if state.status == _OPTED_IN and objection:
            return ConsentPermission(False, objection.entry)
        return ConsentPermission(state.status == _OPTED_IN, state.entry)

    def opted_out(self, contact_id: str, channel: str, category: str) -> bool:
        """Return whether the newest decision on exactly this level is OPTED_OUT."""
        state = self.states.get(Level(contact_id, channel, category))
        return state is not None and state.status == _OPTED_OUT

    def allows(self, contact_id: str, channel: str, category: str, *, opt_in: bool) -> bool:
        """Return whether a contact may be written to."""
        return self.permission(contact_id, channel, category, opt_in=opt_in).allowed


def read(
    organization_id: str,
    contact_ids: Collection[str],
    channels: Collection[str],
    categories: Collection[str],
) -> CurrentConsent:
    """Return the current consent of contacts on channels and in categories; one query."""
    (rows,) = sql.read([query({organization_id: contact_ids}, channels, categories)])
    return parse(rows)[organization_id]


def query(
    contact_ids: Mapping[str, Collection[str]],
    channels: Collection[str],
    categories: Collection[str],
) -> sql.Step:
    """Return the query for the current consent of contacts, which are given by organization."""
    parameters = [sql.array([*channels, ALL]), sql.array([*categories, ALL])]
    return sql.Step(
        _NEWEST,
        [sql.array(contact_ids), sql.arrays(contact_ids.values()), *parameters],
        sql.BY_GENERIC_PLAN,
    )


def parse(rows: sql.Rows) -> defaultdict[str, CurrentConsent]:
    """Return the rows of `query` by organization."""
    found: defaultdict[str, CurrentConsent] = defaultdict(lambda: CurrentConsent({}))
    for organization_id, contact_id, channel, category, *state in rows:
        found[organization_id].states[Level(contact_id, channel, category)] = ConsentState(*state)
    return found
