"""Reading parts of a file: its footer, and row groups, by ranges of bytes.

What a reading costs is bounded: by the row groups that its caller reads, and by `ARCHIVE_SECONDS`.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from messaging.archive import parquet, stores
from messaging.models import ArchiveFile
from messaging.store.archived import ArchivedMessage
from rme.core import errors

log = structlog.get_logger(__name__)

FOOTER: Final = 64 * 1024
"""Bytes at the end of a file that are read at once; nearly always the whole footer."""
FOOTER_LIMIT: Final = 64


class _Range(io.RawIOBase):
    """A file of the store as pyarrow reads it; the end of the file is kept once it was read."""

    def __init__(self, path: str, size: int, until: float) -> None:
        self._path, self._size, self._until = path, size, until
        self._position = 0
        self._end: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        end = self._size if size < 0 else min(start + size, self._size)
        self._position = end
        return self._bytes(start, end) if start < end else b""

    def _bytes(self, start: int, end: int) -> bytes:
        if monotonic() > self._until:
            raise stores.StoreFailed("the time of the call was over")
        border = max(0, self._size - FOOTER)
        if start < border:
            return stores.read_range(self._path, start, end)
        if self._end is None:
            self._end = stores.read_range(self._path, border, self._size)
        return self._end[start - border : end - border]


class RowGroup(NamedTuple):
    """A row group: its position in the file, and the ids between which its messages are."""

    position: int
    first: UUID
    last: UUID


class _Footers:
    """The footers that were read last; a file never changes, and a path is never used again."""

    def __init__(self) -> None:
        self._kept: dict[str, pq.FileMetaData] = {}

    def get(self, file: ArchiveFile, until: float) -> pq.FileMetaData:
        footer = self._kept.get(file.path)
        if footer is None:
            footer = pq.read_metadata(_Range(file.path, file.size, until))
            if len(self._kept) >= FOOTER_LIMIT:
                self._kept.clear()
            self._kept[file.path] = footer
        return footer


footers = _Footers()


@contextmanager
def failing_as_unavailable(path: str) -> Iterator[None]:
    """Raise errors.Unavailable for what the store or a broken file raises."""
    try:
        yield
    except (stores.StoreFailed, pa.ArrowException, OSError) as error:
        log.warning("archive.unreadable", path=path, error=type(error).__name__, text=str(error))
        raise errors.Unavailable("The archive cannot be read right now.") from error


def groups(file: ArchiveFile, until: float) -> list[RowGroup]:
    """Return the row groups of a file, in their order. Raises errors.Unavailable."""
    with failing_as_unavailable(file.path):
        footer = footers.get(file, until)
        statistics = [
            footer.row_group(i).column(0).statistics for i in range(footer.num_row_groups)
        ]
        return [RowGroup(i, UUID(each.min), UUID(each.max)) for i, each in enumerate(statistics)]


def read(
    file: ArchiveFile, group: RowGroup, until: float, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return a row group; by default all of its columns. Raises errors.Unavailable."""
    with failing_as_unavailable(file.path):
        source = pq.ParquetFile(
            _Range(file.path, file.size, until),
            metadata=footers.get(file, until),
            page_checksum_verification=True,
            pre_buffer=True,
        )
        return source.read_row_group(
            group.position, columns=None if columns is None else list(columns), use_threads=False
        )


def find(file: ArchiveFile, key: UUID, until: float) -> ArchivedMessage | None:
    """Return the message with an id, by reading the row group that may have it."""
    for group in groups(file, until):
        if group.first <= key <= group.last:
            table = read(file, group, until)
            position = table.column("id").index(str(key)).as_py()
            if position >= 0:
                return records(file, table.slice(position, 1))[0]
    return None


def records(file: ArchiveFile, table: pa.Table) -> list[ArchivedMessage]:
    """Return the messages of a part of a file."""
    return parquet.records_of(table, file.organization_id)
