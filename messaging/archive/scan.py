"""A walk over the messages of files, from the newest to the oldest, in bounded steps.

Files of one day may overlap, since what ended late comes into a file of its own. So the walk keeps
what is next of each file in a heap: the file, then its row groups, then the rows of one, then
messages. Only what is at the top is read.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from messaging.archive import contact_files, file_reader, parquet
from messaging.archive.file_reader import RowGroup
from messaging.models import ArchiveFile
from messaging.store.archived import ArchivedMessage

GROUPS = 10
"""The most files that a walk opens, and the most row groups that it reads.

It goes on beyond them until it has come further: the next page would begin at the same place.
"""
SLICE = 64
"""Rows that are made to messages at once."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """Something with messages up to an id: a file, a row group of it, or rows that were read."""

    last: UUID
    file: ArchiveFile
    group: RowGroup | None = None
    rows: pa.Table | None = None
    record: ArchivedMessage | None = None

    def __lt__(self, unit: "_Unit") -> bool:
        """The heap has its least on top: the greatest id, and of one id what is already read."""
        return (self.last, self.record is not None) > (unit.last, unit.record is not None)


@dataclass(slots=True)
class Scan:
    """A walk over files, of ids from `since` to below `end`, until a moment (monotonic)."""

    files: Iterator[ArchiveFile]
    """Those with ids of the range, the one with the greatest first."""
    since: UUID
    end: UUID
    until: float
    contacts: Sequence[str] = ()
    """The people to whom messages are; empty: to anybody."""
    columns: Sequence[str] = parquet.LISTED
    _units: list[_Unit] = field(default_factory=list)
    _start: UUID | None = None
    _opened: int = 0
    _read: int = 0

    def __post_init__(self) -> None:
        self._list_next()
        self._start = self.border

    @property
    def border(self) -> UUID | None:
        """Return the least id from which on nothing is left; None if nothing is left at all."""
        return UUID(int=self._units[0].last.int + 1) if self._units else None

    def next(self) -> ArchivedMessage | None:
        """Return the next message; None after the last, or if enough has been read.

        Raises errors.Unavailable.
        """
        while self._units:
            unit = self._units[0]
            if unit.record is not None:
                return heapq.heappop(self._units).record
            if unit.rows is not None:
                heapq.heappop(self._units)
                self._make(unit, unit.rows)
            elif max(self._read, self._opened) >= GROUPS and self.border != self._start:
                return None
            elif unit.group is not None:
                heapq.heappop(self._units)
                self._read_group(unit, unit.group)
            else:
                heapq.heappop(self._units)
                self._open(unit)
        return None

    def _list_next(self) -> None:
        """Add the next file: all later ones have lesser ids."""
        file = next(self.files, None)
        if file is not None:
            self._push(_Unit(file.last_id, file))

    def _push(self, unit: _Unit) -> None:
        """Add what has ids of the range; a border is never above its end."""
        if unit.last >= self.since:
            last = min(unit.last, UUID(int=self.end.int - 1))
            heapq.heappush(self._units, _Unit(last, unit.file, unit.group, unit.rows, unit.record))

    def _open(self, unit: _Unit) -> None:
        self._opened += 1
        self._list_next()
        for group in file_reader.groups(unit.file, self.until):
            if group.first < self.end:
                self._push(_Unit(group.last, unit.file, group=group))

    def _read_group(self, unit: _Unit, group: RowGroup) -> None:
        self._read += 1
        table = file_reader.read(unit.file, group, self.until, self.columns)
        keys = table.column("id")
        in_range = pc.and_(pc.greater_equal(keys, str(self.since)), pc.less(keys, str(self.end)))
        table = table.filter(in_range)
        if self.contacts and table.num_rows:
            table = table.filter(contact_files.is_to(table, self.contacts))
        self._push_rows(unit, table)

    def _push_rows(self, unit: _Unit, rows: pa.Table) -> None:
        if rows.num_rows:
            last = UUID(rows.column("id")[-1].as_py())
            self._push(_Unit(last, unit.file, rows=rows))

    def _make(self, unit: _Unit, rows: pa.Table) -> None:
        """Make messages of the newest rows; the others wait."""
        split = max(0, rows.num_rows - SLICE)
        for record in file_reader.records(unit.file, rows.slice(split)):
            self._push(_Unit(record.message.pk, unit.file, record=record))
        self._push_rows(unit, rows.slice(0, split))
