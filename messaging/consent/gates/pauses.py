"""Pauses in force: what they cover waits and is sent when the pause ends."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from messaging.models import Pause
from rme.core.db import sql

_IN_FORCE = f"""
SELECT organization_id, channel, category, template FROM {Pause._meta.db_table}
WHERE organization_id = ANY(%s::text[]) AND (ends_at IS NULL OR ends_at > now())
"""


class PauseScope(NamedTuple):
    """What one pause covers. An empty part covers everything."""

    channel: str
    category: str
    template: str


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of one organization that are in force."""

    scopes: Sequence[PauseScope]

    def cover(self, channel: str, category: str, template: str | None) -> bool:
        """Return whether any pause covers a delivery: every part it names is the delivery's."""
        return any(
            scope.channel in ("", channel)
            and scope.category in ("", category)
            and scope.template in ("", template)
            for scope in self.scopes
        )


def query(organization_ids: Collection[str]) -> sql.Step:
    """Return the query for the pauses in force in organizations."""
    return sql.Step(_IN_FORCE, [sql.array(organization_ids)])


def parse(rows: sql.Rows) -> dict[str, Pauses]:
    """Return the rows of `query` by organization; organizations without a pause are left out."""
    found: defaultdict[str, list[PauseScope]] = defaultdict(list)
    for organization_id, *scope in rows:
        found[organization_id].append(PauseScope(*scope))
    return {each: Pauses(scopes) for each, scopes in found.items()}
