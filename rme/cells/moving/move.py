"""Move an organization to another cell, step by step.

    COPYING    the target has it ARRIVING; all rows are copied while all goes on here
    PAUSING    LEAVING here: workers end what they hold; then PAUSED here: no process writes,
               the difference is copied, both sides are compared, and it is PAUSED there too
    SWITCHED   MOVED here: from this commit on only the target's rows count
    DONE       the target serves it

A move that was killed goes on where its journal says, or is undone (`abort`) before SWITCHED. Until
the command is given again, workers of both cells end its pause: `abandoned` before the switch,
`pauses` after it. docs/moves.md has the table of what holds after each step.

An advisory lock on each side lets only one process run at a time. In the target it belongs to the
connection that writes there. Here it is a transaction's that stays open, so that workers can try
it; a process that has lost it can no longer switch once its pause was ended.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from rme.cells import abandoned, pauses
from rme.cells.moving import carried, databases, fence, identity, late, names, people
from rme.cells.moving.copying import Copier, Digest, RowDifference
from rme.cells.moving.databases import Connection, MoveDatabases
from rme.cells.moving.fence import TakesTooLong
from rme.cells.moving.journal import Entry, Journal, MoveStep
from rme.cells.moving.report import Report
from rme.cells.placements import Phase
from rme.core.db import commits

Say = Callable[[str], None]
CATCH_UPS = 5
"""How often the difference is copied before the pause, at most."""
FEW_ROWS = 2_000
"""A difference this small is copied within the pause."""
COMPARISONS = 3
OPEN_SECONDS = 10.0
"""How long to wait for open transactions while the organization is not paused."""
_LOCK = f"SELECT {abandoned.TRY_LOCK.format('%s::text')}"
_LOCK_TARGET = "SELECT pg_try_advisory_lock(hashtextextended('move ' || %s::text, 17))"
_EXISTS = "SELECT EXISTS (SELECT FROM tenants_organization WHERE id = %s)"
ENDED = "The pause was ended, as the connection with the lock broke."


class MoveRefused(Exception):
    """A move that cannot begin, or be undone; the message says why."""


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """How long the phases of a move may take, in seconds."""

    leaving_seconds: float = 90.0
    """For what is being sent: a lease is 60 s, and its sweep seconds more."""
    pause_seconds: float = 30.0

    def transactions_end(self) -> float:
        """Return the moment until which open transactions are waited for before the pause."""
        return time.monotonic() + min(OPEN_SECONDS, self.leaving_seconds)


class _Connections(NamedTuple):
    """The connections of a move; that of the lock stays in one transaction."""

    source: Connection
    lock: Connection
    target: Connection


class Mover:
    """Moves one organization. Use `opened`."""

    def __init__(
        self, cells: MoveDatabases, connections: _Connections, organization_id: str, say: Say
    ) -> None:
        self.cells, self.organization_id, self.say = cells, organization_id, say
        self.source, self.lock, self.target = connections
        self.own = identity.require_movable(self.source, self.target, cells.name)
        tables = carried.tables()
        shapes = {each.name: databases.shape(self.source, each.name) for each in tables}
        self.copier = Copier(self.source, self.target, tables, shapes, organization_id)
        self.journal = Journal(self.source, organization_id, cells.name)
        self.report = Report(organization_id, self.own.name, cells.name)
        self.paused_at: float | None = None

    # --- the whole way ----------------------------------------------------------------------------
    def move(self, limits: MoveLimits) -> Report:
        """Move the organization, or go on with its move. Raise MoveRefused or TakesTooLong.

        If a phase would take longer than its limit, the organization goes on here.
        """
        step = self._begin()
        if step is MoveStep.COPYING:
            with self._timed("copying"):
                self._copy()
                self._catch_up()
            try:
                self._pause_and_switch(limits)
            finally:
                self._go_on_here_unless_switched()
        self._finish()
        return self.report

    def abort(self) -> None:
        """Undo a move: the organization goes on here, and the target's rows are dropped."""
        entry = self._entry("No move of this organization has begun.")
        if entry.step in (MoveStep.SWITCHED, MoveStep.DONE):
            raise MoveRefused("The target has the organization already: move it back from there.")
        self._go_on_here_unless_switched()
        if fence.arrive(self.target, self.organization_id, self.own.name):
            self.say("it goes on here; dropping the rows of the target")
            self.copier.drop(self.target)
            people.remove_unused(
                self.target, [old for old, new in entry.users.items() if old == new]
            )
            fence.leave_nothing(self.target, self.organization_id, self.own.name)
        else:
            self.say("it goes on here; the target has an organization of that id of its own")
        self.journal.forget()

    def drop_left(self, *, late_too: bool = False) -> int:
        """Delete the rows that a move has left here; return how many.

        Raise MoveRefused; or LateRows unless `late_too`, for what the target has not.
        """
        entry = self._entry("No finished move of this organization has left rows here.")
        if entry.step not in (MoveStep.SWITCHED, MoveStep.DONE):
            raise MoveRefused("No finished move of this organization has left rows here.")
        if fence.location(self.source, self.organization_id).phase != Phase.MOVED:
            raise MoveRefused("It is here again, so its rows are in use.")
        self.copier.users = entry.users
        if not late_too:
            self._finish()
            self._require_none_late(missing_only=True)
        persons = people.of(self.source, self.organization_id) | entry.users.keys()
        count = self.copier.drop(self.source) + people.remove_unused(self.source, persons)
        self.journal.forget()
        return count

    # --- steps ------------------------------------------------------------------------------------
    def _begin(self) -> MoveStep:
        """Return the step to go on with. Raise MoveRefused."""
        if (entry := self.journal.read()) is None:
            self._require_free()
            self.journal.begin(self.copier.oldest())
            return MoveStep.COPYING
        self._require_target(entry)
        self.copier.users = entry.users
        self._go_on_here_unless_switched()
        return MoveStep.COPYING if entry.step is MoveStep.PAUSING else entry.step

    def _require_free(self) -> None:
        """Raise MoveRefused unless the organization is here alone, and its keys are free there."""
        source_placement = fence.location(self.source, self.organization_id)
        if source_placement.phase:
            raise MoveRefused(f"It is not here: {source_placement.phase}, {source_placement.cell}.")
        is_here, is_there = (
            side.execute(_EXISTS, [self.organization_id]).fetchone() == (True,)
            for side in (self.source, self.target)
        )
        if not is_here:
            raise MoveRefused("This organization isn't here.")
        target_placement = fence.location(self.target, self.organization_id)
        if target_placement.phase == Phase.MOVED and is_there:
            raise MoveRefused(
                f"{self.cells.name} has rows of its former stay: drop them there first."
            )
        if is_there and not (target_placement.phase and target_placement.cell == self.own.name):
            raise MoveRefused(f"{self.cells.name} has another organization of that id.")
        identity.require_archive(self.source, self.target, self.cells.name, self.organization_id)
        if taken_names := names.taken(self.source, self.target, self.organization_id):
            raise MoveRefused(
                f"Another organization of {self.cells.name} has {', '.join(taken_names)}."
            )

    def _copy(self) -> None:
        if not fence.arrive(self.target, self.organization_id, self.own.name):
            raise MoveRefused(f"{self.cells.name} has another organization of that id by now.")
        self._copy_people()
        self.report.copied += self.copier.copy_small()
        copied = list(self._entry().copied)
        for table, partition in self.copier.large():
            if partition in copied:
                continue
            count = self.copier.copy_partition(table, partition)
            self.report.copied += count
            copied.append(partition)
            self.journal.note_copied(copied)
            if count:
                self.say(f"copied {count:,} rows of {partition}")

    def _copy_people(self) -> None:
        copied = [old for old, new in self.copier.users.items() if old == new]
        arriving = people.find(
            self.source, self.target, self.organization_id, self.own.name, copied
        )
        self.copier.users = {**self.copier.users, **arriving.ids}
        self.report.renamed = {**self.report.renamed, **arriving.renamed}
        self.journal.note_users(self.copier.users)
        people.copy(self.source, self.target, arriving)

    def _catch_up(self) -> None:
        """Copy what was written meanwhile, until little is left."""
        for _ in range(CATCH_UPS):
            row_count = self._copy_changes()
            self.report.caught_up += row_count
            self.say(f"caught up with {row_count:,} rows")
            if row_count < FEW_ROWS:
                return

    def _copy_changes(self) -> int:
        self._copy_people()
        copied = self.copier.copy_changes(self._entry().since)
        self.journal.note_since(copied.since)
        return copied.rows

    def _pause_and_switch(self, limits: MoveLimits) -> None:
        # While it waits for these, all goes on; those that begin later are most likely short.
        fence.wait_for_transactions(self.source, limits.transactions_end())
        pause = self.journal.begin_pause()
        self.say("leaving")
        with self._timed("leaving"):
            until = time.monotonic() + limits.leaving_seconds
            fence.wait_until_known()
            fence.wait_for_transactions(self.source, limits.transactions_end())
            fence.wait_for_sends(self.source, self.organization_id, until)
            self.report.caught_up += self._copy_changes()
        self.paused_at = time.monotonic()
        until = self.paused_at + limits.pause_seconds
        if not self.journal.write_nothing(pause):
            raise TakesTooLong(ENDED)
        self.say("paused")
        fence.wait_until_known()
        fence.wait_for_transactions(self.source, until)
        fence.release_endpoints(self.source, self.organization_id)
        self._copy_people()
        self.report.digests = self._copy_rest(until)
        self._switch(pause)

    def _switch(self, pause: UUID) -> None:
        """Switch to the target's rows. Raise TakesTooLong if the pause has ended before."""
        if not fence.await_switch(self.target, self.organization_id, self.own.name, pause):
            raise TakesTooLong("The target has ended the arrival.")
        self.say("ready: both cells have the same rows")
        if not self.journal.switch(pause):
            raise TakesTooLong(ENDED)
        self.say("switched")

    def _copy_rest(self, until: float) -> Mapping[str, Digest]:
        """Copy the difference until both sides are the same.

        Raise RowDifference or TakesTooLong.
        """
        differing: dict[str, tuple[Digest, Digest]] = {}
        for _ in range(COMPARISONS):
            if differing:
                self.report.difference += self.copier.copy_again(differing)
            copied = self.copier.copy_changes(self._entry().since, compare=True)
            self.report.difference += copied.rows
            self.journal.note_since(copied.since)
            target_digests = self.copier.digests(self.target)
            differing = {
                name: (digest, target_digests[name])
                for name, digest in copied.digests.items()
                if digest != target_digests[name]
            }
            if time.monotonic() > until:
                raise TakesTooLong("The pause took too long.")
            if not differing:
                return copied.digests
        raise RowDifference(f"Both cells differ in {differing}.")

    def _finish(self) -> None:
        """Start the organization in the target, unless it is there already. Raise LateRows."""
        entry = self._entry()
        if entry.step is MoveStep.SWITCHED:
            self.source.execute(commits.CONFIRM_EARLIER)
            self.target.execute(pauses.START, [[entry.pause]])
            if self.paused_at is not None:
                self.report.seconds["paused"] = time.monotonic() - self.paused_at
        self.say(f"{self.cells.name} serves it")
        if entry.step is MoveStep.SWITCHED:
            fence.wait_until_known()
            fence.wait_for_transactions(self.source, time.monotonic() + OPEN_SECONDS)
            self._require_none_late(missing_only=False)
            self.journal.note_done()

    def _require_none_late(self, *, missing_only: bool) -> None:
        """Raise LateRows if rows were written here after both cells were compared."""
        if rows := late.find(self.copier, self._entry().since, missing_only=missing_only):
            raise late.LateRows(rows)

    def _go_on_here_unless_switched(self) -> None:
        """End the pause of a move that failed or was killed before its switch."""
        if self.journal.give_up_pause():
            fence.arrive(self.target, self.organization_id, self.own.name)
            self.say("it goes on here; the copy is kept, for another try or --abort")

    def _entry(self, without: str = "The journal is gone.") -> Entry:
        """Return the journal. Raise MoveRefused without one."""
        if (entry := self.journal.read()) is None:
            raise MoveRefused(without)
        self._require_target(entry)
        return entry

    def _require_target(self, entry: Entry) -> None:
        if entry.cell != self.cells.name:
            raise MoveRefused(f"It is being moved to {entry.cell}: end or abort that first.")

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.report.seconds[name] = time.monotonic() - began


@contextmanager
def opened(cells: MoveDatabases, organization_id: str, say: Say) -> Iterator[Mover]:
    """Open the move of an organization alone. Raise MoveRefused or identity.NotReady."""
    with ExitStack() as stack:
        source, lock, target = (
            stack.enter_context(closing(databases.connect(each, variable)))
            for each, variable in (
                *[(cells.source, "DATABASE_DIRECT_URL or DATABASE_URL")] * 2,
                (cells.target, "MOVE_DATABASE_URL"),
            )
        )
        mover = Mover(cells, _Connections(source, lock, target), organization_id, say)
        with lock.transaction():
            for side, text in ((lock, _LOCK), (target, _LOCK_TARGET)):
                if side.execute(text, [organization_id]).fetchone() != (True,):
                    raise MoveRefused("Another process is moving it.")
            yield mover
