"""Move an organization to another cell, step by step.

    COPYING    the target has it ARRIVING; all rows are copied while all goes on here
    PAUSING    LEAVING here: workers end what they hold; then PAUSED here: no process writes,
               the difference is copied, both sides are compared, and it is PAUSED there
    SWITCHED   MOVED here: from this commit on only the target's rows count
    DONE       the target serves it

A move that was killed goes on where its journal says, or is undone (`abort`) before SWITCHED. An
advisory lock of a transaction that stays open lets only one run at a time.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg.types.json import Jsonb

from rme.tenants.cells import abandoned
from rme.tenants.cells.moving import carried, databases, fence, identity, people
from rme.tenants.cells.moving.copying import Copier, Differs, Digest
from rme.tenants.cells.moving.databases import Connection
from rme.tenants.cells.moving.fence import TakesTooLong
from rme.tenants.cells.placements import Phase
from rme.tenants.models import Move

MoveStep = Move.MoveStep
Say = Callable[[str], None]
CATCH_UPS = 5
"""How often the difference is copied before the pause, at most."""
FEW_ROWS = 2_000
"""A difference this small is copied within the pause."""
COMPARISONS = 3
LEAVING_SECONDS = 150.0
"""How long to wait for what is being sent: a lease is 60 s, and its sweep seconds more."""
_LOCK = f"SELECT {abandoned.TRY_LOCK.format('%s::text')}"
_SWITCH = """
UPDATE tenants_move SET step = 'SWITCHED' WHERE organization_id = %s AND step = 'PAUSING'
"""
_KNOWN = "SELECT phase, cell FROM tenants_placement WHERE organization_id = %s"


class Refused(Exception):
    """A move that cannot begin, or be undone; the message says why."""


@dataclass(slots=True)
class Report:
    """What a move has done."""

    organization_id: str
    source: str
    target: str
    copied: int = 0
    """Rows of the first pass."""
    caught_up: int = 0
    """Rows of the passes before the pause."""
    difference: int = 0
    """Rows that were copied within the pause."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By step; `paused` is from the pause to the moment in which the target serves it."""
    digests: Mapping[str, Digest] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ends:
    """The databases of both cells, and the target's name."""

    source: Mapping[str, Any]
    target: Mapping[str, Any]
    name: str


class Mover:
    """Moves one organization. Use `opened`."""

    def __init__(self, ends: Ends, organization_id: str, say: Say) -> None:
        self.ends, self.organization_id, self.say = ends, organization_id, say
        self.source = databases.connect(ends.source)
        self.lock = databases.connect(ends.source)
        self.target = databases.connect(ends.target)
        self.own = identity.require_movable(self.source, self.target, ends.name)
        tables = carried.tables()
        shapes = {each.name: databases.shape(self.source, each.name) for each in tables}
        self.copier = Copier(self.source, self.target, tables, shapes, organization_id)
        self.report = Report(organization_id, self.own.name, ends.name)

    # --- the whole way ----------------------------------------------------------------------------
    def move(self, pause_seconds: float) -> Report:
        """Move the organization, or go on with its move. Raise Refused or TakesTooLong.

        If the pause would take longer than `pause_seconds`, the organization goes on here.
        """
        step = self._begin()
        if step is MoveStep.COPYING:
            with self._timed("copying"):
                self._copy()
                self._catch_up()
            try:
                self._pause_and_switch(pause_seconds)
            finally:
                self._go_on_here_unless_switched()
        if step is not MoveStep.DONE:
            self._finish()
        return self.report

    def abort(self) -> None:
        """Undo a move: the organization goes on here, and the target's rows are dropped."""
        journal = self._journal()
        if journal is None:
            raise Refused("No move of this organization has begun.")
        if journal["step"] in (MoveStep.SWITCHED, MoveStep.DONE):
            raise Refused("The target has the organization already: move it back from there.")
        fence.remove(self.source, self.organization_id)
        self.say("it goes on here; dropping the rows of the target")
        self.drop(self.target)
        fence.remove(self.target, self.organization_id)
        self._forget()

    def drop_left(self) -> int:
        """Delete the rows that a finished move has left here; return how many."""
        journal = self._journal()
        if journal is None or journal["step"] != MoveStep.DONE:
            raise Refused("No finished move of this organization has left rows here.")
        count = self.drop(self.source)
        self._forget()
        return count

    def drop(self, side: Connection) -> int:
        """Delete the organization's rows of a cell in small transactions; return how many.

        Entries of the audit stay: nothing deletes them.
        """
        count = 0
        for table in reversed(self.copier.tables):
            if not table.is_changed:
                continue
            own = table.rows_of(self.organization_id)
            for partition in databases.shape(side, table.name).partitions:
                text = (
                    f"DELETE FROM {partition} WHERE ctid = ANY(ARRAY("
                    f"SELECT t.ctid FROM {partition} t WHERE {own} LIMIT 5000))"
                )
                while deleted := side.execute(text).rowcount:
                    count += deleted
        return count

    # --- steps ------------------------------------------------------------------------------------
    def _begin(self) -> MoveStep:
        """Return the step to go on with. Raise Refused."""
        journal = self._journal()
        if journal is not None:
            if journal["cell"] != self.ends.name:
                raise Refused(f"It is being moved to {journal['cell']}: end or abort that first.")
            self.copier.users = {int(old): new for old, new in journal["users"].items()}
            self._go_on_here_unless_switched()
            step = MoveStep(journal["step"])
            return MoveStep.COPYING if step is MoveStep.PAUSING else step
        here = self.source.execute(_KNOWN, [self.organization_id]).fetchone()
        if here is not None:
            raise Refused(f"It is not here: {here[0]}, {here[1]}.")
        exists = "SELECT count(*) FROM tenants_organization WHERE id = %s"
        counts = [
            side.execute(exists, [self.organization_id]).fetchone()
            for side in (self.source, self.target)
        ]
        if counts[0] != (1,):
            raise Refused("There is no such organization here.")
        before = self.target.execute(_KNOWN, [self.organization_id]).fetchone()
        if counts[1] != (0,) and before is None:
            raise Refused(f"{self.ends.name} has another organization of that id.")
        since = self.copier.snapshot().oldest
        self.source.execute(
            "INSERT INTO tenants_move (organization_id, cell, step, since, copied, users) "
            "VALUES (%s, %s, %s, %s, '[]', '{}')",
            [self.organization_id, self.ends.name, MoveStep.COPYING.value, since],
        )
        return MoveStep.COPYING

    def _copy(self) -> None:
        fence.place(self.target, self.organization_id, Phase.ARRIVING, self.own.name)
        arrivals = people.copy(self.source, self.target, self.organization_id, self.own.name)
        self.copier.users = {**self.copier.users, **arrivals.ids}
        self.report.renamed = arrivals.renamed
        self._note(users=Jsonb(self.copier.users))
        self.report.copied += self.copier.copy_small()
        journal = self._journal()
        copied = list(journal["copied"]) if journal else []
        for table, partition in self.copier.large():
            if partition in copied:
                continue
            count = self.copier.copy_partition(table, partition)
            self.report.copied += count
            copied.append(partition)
            self._note(copied=Jsonb(copied))
            if count:
                self.say(f"copied {count:,} rows of {partition}")

    def _catch_up(self) -> None:
        """Copy what was written meanwhile, until little is left."""
        for _ in range(CATCH_UPS):
            done = self._copy_changes()
            self.report.caught_up += done
            self.say(f"caught up with {done:,} rows")
            if done < FEW_ROWS:
                return

    def _copy_changes(self) -> int:
        journal = self._journal()
        assert journal is not None  # it began with one
        done = self.copier.copy_changes(journal["since"])
        self._note(since=done.since)
        return done.rows

    def _pause_and_switch(self, pause_seconds: float) -> None:
        own = [each.info.backend_pid for each in (self.source, self.lock)]
        fence.place(self.source, self.organization_id, Phase.LEAVING, self.ends.name)
        self._note(step=MoveStep.PAUSING.value)
        with self._timed("leaving"):
            until = time.monotonic() + LEAVING_SECONDS
            fence.wait_until_known()
            fence.wait_for_transactions(self.source, own, until)
            fence.wait_for_sends(self.source, self.organization_id, until)
            self.report.caught_up += self._copy_changes()
        self.paused_at = time.monotonic()
        until = self.paused_at + pause_seconds
        fence.place(self.source, self.organization_id, Phase.PAUSED, self.ends.name)
        self.say("paused")
        fence.wait_until_known()
        fence.wait_for_transactions(self.source, own, until)
        fence.release_endpoints(self.source, self.organization_id)
        self.report.digests = self._copy_rest(until)
        fence.place(self.target, self.organization_id, Phase.PAUSED, self.own.name)
        with self.source.transaction():
            # Workers end the pause of a move that seems dead to them (`abandoned`).
            if not self.source.execute(_SWITCH, [self.organization_id]).rowcount:
                raise TakesTooLong("The pause was ended, as the connection with the lock broke.")
            fence.place(self.source, self.organization_id, Phase.MOVED, self.ends.name)

    def _copy_rest(self, until: float) -> Mapping[str, Digest]:
        """Copy the difference until both sides are the same. Raise Differs or TakesTooLong."""
        differing: dict[str, tuple[Digest, Digest]] = {}
        for _ in range(COMPARISONS):
            journal = self._journal()
            assert journal is not None  # it began with one
            if differing:
                self.report.difference += self.copier.copy_again(differing)
            done = self.copier.copy_changes(journal["since"], compare=True)
            self.report.difference += done.rows
            there = self.copier.digests(self.target)
            differing = {
                name: (digest, there[name])
                for name, digest in done.digests.items()
                if digest != there[name]
            }
            if time.monotonic() > until:
                raise TakesTooLong("The pause took too long.")
            if not differing:
                return done.digests
        raise Differs(f"Both cells differ in {differing}.")

    def _finish(self) -> None:
        """Let the target serve the organization."""
        fence.remove(self.target, self.organization_id)
        if hasattr(self, "paused_at"):
            self.report.seconds["paused"] = time.monotonic() - self.paused_at
        self._note(step=MoveStep.DONE.value)
        self.say(f"{self.ends.name} serves it")

    def _go_on_here_unless_switched(self) -> None:
        """End the pause of a move that failed or was killed before its switch."""
        journal = self._journal()
        if journal is None or journal["step"] != MoveStep.PAUSING:
            return
        with self.source.transaction():
            fence.remove(self.source, self.organization_id)
            self._note(step=MoveStep.COPYING.value)
        fence.place(self.target, self.organization_id, Phase.ARRIVING, self.own.name)
        self.say("it goes on here; the copy is kept, for another try or --abort")

    # --- the journal ------------------------------------------------------------------------------
    def _journal(self) -> dict[str, Any] | None:
        row = self.source.execute(
            "SELECT to_jsonb(m) FROM tenants_move m WHERE organization_id = %s",
            [self.organization_id],
        ).fetchone()
        return dict(row[0]) if row else None

    def _note(self, **values: object) -> None:
        changes = ", ".join(f"{name} = %({name})s" for name in values)
        self.source.execute(
            f"UPDATE tenants_move SET {changes} WHERE organization_id = %(organization_id)s",
            {**values, "organization_id": self.organization_id},
        )

    def _forget(self) -> None:
        self.source.execute(
            "DELETE FROM tenants_move WHERE organization_id = %s", [self.organization_id]
        )

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.report.seconds[name] = time.monotonic() - began


@contextmanager
def opened(ends: Ends, organization_id: str, say: Say) -> Iterator[Mover]:
    """Open the move of an organization alone. Raise Refused or identity.NotReady."""
    mover = Mover(ends, organization_id, say)
    try:
        with mover.lock.transaction():
            (free,) = mover.lock.execute(_LOCK, [organization_id]).fetchone() or (False,)
            if not free:
                raise Refused("Another process is moving it.")
            yield mover
    finally:
        for side in (mover.source, mover.target, mover.lock):
            side.close()
