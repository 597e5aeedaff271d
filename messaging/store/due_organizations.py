"""Find the organizations that have something due, in an order fair to all.

However many organizations wait, and however much each has waiting, a search costs the same: it
starts at a random organization, takes one step through an index for each, and ends when it has
found enough. So it does not list all that wait, and each is found soon.
"""

import random
from collections.abc import Collection
from typing import NamedTuple

from messaging.domain.channels import Channel
from messaging.domain.statuses import PRIORITIES, Status
from messaging.models import Delivery
from rme.core.db import sql
from rme.core.placement import places
from rme.tenants import organizations

STEPS = 256
"""A search looks at no more organizations of a priority than this on either side of its start."""
OLDEST = 8
"""The number of each channel's oldest deliveries that it looks at, too."""

_D = Delivery._meta.db_table
_NOW = "statement_timestamp()"
_CHANNELS = "VALUES " + ", ".join(f"('{channel}')" for channel in Channel)


def _walk(name: str, select: str) -> str:
    """Return the table `name` for WITH RECURSIVE: organizations in the order of their ids, and when
    the first delivery of each is due.
    """
    first = "ORDER BY d.organization_id, d.due_at LIMIT 1"
    return f"""{name} AS (
  SELECT first.*, 1 AS step FROM ({select} {first}) first
  UNION ALL
  SELECT following.*, step + 1 FROM {name}, LATERAL (
    {select} AND d.organization_id > {name}.organization_id {first}) following
  WHERE step < {STEPS}
)"""


def _oldest(status: Status, channels: str, priority: int, count: int) -> str:
    """Return the query of the oldest deliveries of each channel; the index is delivery_waiting."""
    return f"""SELECT found.* FROM ({channels}) wanted(channel), LATERAL (
  SELECT d.organization_id, d.due_at FROM {_D} d
  WHERE d.status = '{status}' AND d.channel = wanted.channel AND d.priority = {priority}
    AND d.due_at IS NOT NULL
  ORDER BY d.due_at NULLS FIRST LIMIT {count}) found"""


class WaitingOrganization(NamedTuple):
    """An organization that has deliveries of a priority due."""

    priority: int
    organization_id: str


# Plan (BY_GENERIC_PLAN): delivery_ready or delivery_scheduled, one step for each organization, and
# the first of delivery_waiting; both in all partitions.
# Run by: find, for delivery.claims and store.due_work
class DueStatement:
    """The statement that finds organizations with deliveries of one status that are due."""

    def __init__(self, status: Status, limit: int, *, by_channel: bool) -> None:
        """Build the statement for all channels, or (`by_channel`) for one that each names."""
        channel, channels = (
            ("d.channel = %(channel)s AND ", "SELECT %(channel)s")
            if by_channel
            else ("", _CHANNELS)
        )
        walks, parts = [], []
        for priority in PRIORITIES:
            select = (
                f"SELECT d.organization_id, d.due_at FROM {_D} d WHERE d.status = '{status}' "
                f"AND {channel}d.priority = {priority} AND d.organization_id"
            )
            walks.append(_walk(f"after_{priority}", f"{select} >= %(start)s"))
            walks.append(_walk(f"before_{priority}", f"{select} < %(start)s"))
            # The parts are read one after the other, and no further than to the limit.
            parts.append(f"""
SELECT {priority} AS priority, organization_id FROM (
  SELECT organization_id, due_at FROM after_{priority} UNION ALL
  SELECT organization_id, due_at FROM before_{priority} UNION ALL
  SELECT * FROM ({_oldest(status, channels, priority, OLDEST)}) oldest) waiting
WHERE due_at <= {_NOW}
  AND (SELECT min(due_at) FROM ({_oldest(status, channels, priority, 1)}) oldest) <= {_NOW}""")
        self._text = f"""
WITH RECURSIVE {", ".join(walks)}
SELECT priority, organization_id FROM ({" UNION ALL ".join(parts)}) due
WHERE organization_id <> ALL(%(without)s::text[]) LIMIT {limit}"""

    def find(self, channel: str = "", without: Collection[str] = ()) -> list[WaitingOrganization]:
        """Return some organizations: the first priority first, else in random order.

        `without` are organizations to leave out, besides those that aren't here.
        """
        excluded = sql.array(places().absent().union(without))
        values = {"channel": channel, "start": organizations.random_id(), "without": excluded}
        rows = sql.read_in_order(self._text, values, setting=sql.BY_GENERIC_PLAN)
        organizations_due = list({WaitingOrganization(*row) for row in rows})
        random.shuffle(organizations_due)
        return sorted(organizations_due, key=lambda organization: organization.priority)


# Plan (BY_GENERIC_PLAN): delivery_waiting in all partitions, the first of each channel and
# priority.
# Run by: waiting_channels, for delivery.tasks
WAITING = f"""
SELECT DISTINCT wanted.channel
FROM ({_CHANNELS}) wanted(channel), (VALUES {", ".join(f"({each})" for each in PRIORITIES)})
  of(priority), LATERAL (
    SELECT d.due_at FROM {_D} d
    WHERE d.status = 'ACCEPTED' AND d.channel = wanted.channel AND d.priority = of.priority
      AND d.due_at IS NOT NULL
    ORDER BY d.due_at NULLS FIRST LIMIT 1) oldest
WHERE oldest.due_at <= {_NOW}
"""


def waiting_channels() -> list[str]:
    """Return the channels on which something is ready to be sent now."""
    return [channel for (channel,) in sql.read_in_order(WAITING, setting=sql.BY_GENERIC_PLAN)]
