"""The journal of a move, in the cell that the organization leaves, and the phases there.

Where both change, they change in one transaction: a process that is killed leaves no phase behind
that no journal explains.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from rme.cells.moving import fence
from rme.cells.moving.databases import Connection
from rme.cells.placements import Phase
from rme.tenants.models import Move

MoveStep = Move.MoveStep
_READ = """
SELECT cell, step, since, copied, users, pause FROM tenants_move WHERE organization_id = %s
"""
_BEGIN = """
INSERT INTO tenants_move (organization_id, cell, step, since, copied, users)
VALUES (%s, %s, 'COPYING', %s, '[]', '{}')
"""
_PAUSE = """
UPDATE tenants_move SET step = 'PAUSING', pause = %s WHERE organization_id = %s AND step = 'COPYING'
"""
_STILL = """
UPDATE tenants_move SET step = step
WHERE organization_id = %s AND step = 'PAUSING' AND pause = %s
"""
_SWITCH = """
UPDATE tenants_move SET step = 'SWITCHED'
WHERE organization_id = %s AND step = 'PAUSING' AND pause = %s
"""
_GIVE_UP = (
    "UPDATE tenants_move SET step = 'COPYING' WHERE organization_id = %s AND step = 'PAUSING'"
)


class Entry(NamedTuple):
    """A row of the journal."""

    cell: str
    step: MoveStep
    since: int
    """The transaction from which on changes are not copied yet."""
    copied: list[str]
    users: dict[int, int]
    pause: UUID | None


class Journal:
    """The journal of one organization's move."""

    def __init__(self, source: Connection, organization_id: str, target: str) -> None:
        self.source, self.organization_id, self.target = source, organization_id, target

    def read(self) -> Entry | None:
        """Return the journal; None if no move has begun."""
        row = self.source.execute(_READ, [self.organization_id]).fetchone()
        if row is None:
            return None
        cell, step, since, copied, users, pause = row
        user_ids = {int(old): new for old, new in users.items()}
        return Entry(cell, MoveStep(step), since, copied, user_ids, pause)

    def begin(self, since: int) -> None:
        """Begin the journal of a move."""
        self.source.execute(_BEGIN, [self.organization_id, self.target, since])

    def forget(self) -> None:
        """End the journal."""
        self.source.execute(
            "DELETE FROM tenants_move WHERE organization_id = %s", [self.organization_id]
        )

    def note_since(self, since: int) -> None:
        """Note from which transaction on changes are not copied yet."""
        self._note("since", since)

    def note_copied(self, partitions: list[str]) -> None:
        """Note the partitions that were copied."""
        self._note("copied", Jsonb(partitions))

    def note_users(self, users: Mapping[int, int]) -> None:
        """Note the people who have other ids in the target."""
        self._note("users", Jsonb(dict(users)))

    def begin_pause(self) -> UUID:
        """Set the organization LEAVING. Return the id of the pause, which a switch has to name."""
        pause = uuid4()
        with self.source.transaction():
            self.source.execute(_PAUSE, [pause, self.organization_id])
            fence.place(self.source, self.organization_id, Phase.LEAVING, self.target)
        return pause

    def write_nothing(self, pause: UUID) -> bool:
        """Stop all writes; return False if workers have ended the pause (`abandoned`)."""
        with self.source.transaction():
            if not self.source.execute(_STILL, [self.organization_id, pause]).rowcount:
                return False
            fence.place(self.source, self.organization_id, Phase.PAUSED, self.target)
        return True

    def switch(self, pause: UUID) -> bool:
        """Set the organization MOVED. Return False if the pause has ended before."""
        with self.source.transaction():
            if not self.source.execute(_SWITCH, [self.organization_id, pause]).rowcount:
                return False
            fence.place(self.source, self.organization_id, Phase.MOVED, self.target)
        return True

    def note_done(self) -> None:
        """Note that the target serves the organization."""
        self._note("step", MoveStep.DONE.value)

    def give_up_pause(self) -> bool:
        """End the pause, so that the organization stays here. Return False if there was none."""
        with self.source.transaction():
            if not self.source.execute(_GIVE_UP, [self.organization_id]).rowcount:
                return False
            fence.go_on(self.source, self.organization_id)
        return True

    def _note(self, column: str, value: int | str | Jsonb) -> None:
        self.source.execute(
            f"UPDATE tenants_move SET {column} = %s WHERE organization_id = %s",
            [value, self.organization_id],
        )
