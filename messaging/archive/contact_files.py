"""Whole files: whether they are as they were written, and what they hold of some people."""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from messaging.archive import parquet, records, stores
from messaging.models import ArchiveFile
from messaging.store.archived import ArchivedMessage


def read(file: ArchiveFile) -> pa.Table:
    """Return a whole file, whose checksum was compared. Raises StoreFailed."""
    content = stores.read(file.path)
    if stores.digest_of(content) != file.digest:
        raise stores.StoreFailed(f"the file {file.path} is not as it was written")
    try:
        return parquet.open_table(content)
    except (pa.ArrowException, OSError) as error:
        raise stores.StoreFailed(f"the file {file.path} cannot be read as Parquet") from error


def messages_to(file: ArchiveFile, contacts: Collection[str]) -> list[ArchivedMessage]:
    """Return the messages of a file to some people. Raises StoreFailed."""
    table = read(file)
    return parquet.records_of(table.filter(is_to(table, contacts)), file.organization_id)


def without(table: pa.Table, organization_id: str, contacts: Collection[str]) -> pa.Table:
    """Return a file's messages without what they hold of some people."""
    if not contacts or not table.num_rows:
        return table
    concerned = is_to(table, contacts)
    changed = parquet.records_of(table.filter(concerned), organization_id)
    if not changed:
        return table
    for record in changed:
        records.erase(record, contacts)
    return parquet.merge([table.filter(pc.invert(concerned)), parquet.table_of(changed)])


def is_to(table: pa.Table, contacts: Collection[str]) -> pa.Array:
    """Return for each message whether one of its deliveries is to one of the people."""
    deliveries = table.column("deliveries").combine_chunks()
    matches = pc.is_in(
        deliveries.flatten().field("contact_id"), pa.array(sorted(contacts), pa.string())
    )
    rows = pc.unique(pc.filter(pc.list_parent_indices(deliveries), matches))
    return pc.is_in(pa.array(range(table.num_rows), pa.int64()), rows.cast(pa.int64()))


def problems(files: Iterator[ArchiveFile]) -> Iterator[tuple[ArchiveFile, str]]:
    """Read files whole and yield each with what is wrong; an empty text if nothing is."""
    for file in files:
        try:
            table = read(file)
        except stores.StoreFailed as error:
            yield file, str(error)
            continue
        keys = table.column("id").to_pylist()
        is_same = keys == sorted(set(keys)) and len(keys) == file.messages
        bounds = (str(file.first_id), str(file.last_id))
        is_same = is_same and (keys[0], keys[-1]) == bounds
        yield file, "" if is_same else "the index does not fit the file"
