"""Files of the archive: messages with their rows, sorted by id, as Parquet.

The columns are those of the models: a file says by its own schema what it holds. A column that a
model no longer has is ignored, and one that it did not have yet has the model's default. The rows
that belong to a message are lists of structs. Ids and JSON are texts, so that any tool reads them.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from django.db import models

from messaging.models import Attempt, Delivery, Event, Message
from messaging.store.archived import ArchivedMessage

VERSION: Final = 1
"""Of the format; a file's is in the index."""
GROUP: Final = 1000
"""Messages of a row group, which is what a look-up by id reads."""

Row = TypeVar("Row", bound=models.Model)
Field: TypeAlias = "models.Field[Any, Any]"

_TYPES: Mapping[str, pa.DataType] = {
    "ArrayField": pa.list_(pa.string()),
    "BigIntegerField": pa.int64(),
    "BooleanField": pa.bool_(),
    "CharField": pa.string(),
    "DateTimeField": pa.timestamp("us", "UTC"),
    "IntegerField": pa.int32(),
    "JSONField": pa.string(),
    "SmallIntegerField": pa.int16(),
    "TextField": pa.string(),
    "UUIDField": pa.string(),
}
_OF_FILE = frozenset({"organization_id"})
"""The same for all rows of a file."""
_OF_PARENT = _OF_FILE | {"message_id"}


def _fields(model: type[models.Model], excluded: frozenset[str]) -> list[Field]:
    return [each for each in model._meta.concrete_fields if each.attname not in excluded]


_MESSAGE = _fields(Message, _OF_FILE)
_PARTS: Mapping[str, tuple[type[models.Model], list[Field]]] = {
    "deliveries": (Delivery, _fields(Delivery, _OF_PARENT)),
    "attempts": (Attempt, _fields(Attempt, _OF_PARENT)),
    "events": (Event, _fields(Event, _OF_PARENT)),
}
LISTED: Final = (*(each.attname for each in _MESSAGE), "deliveries")
"""What lists of messages read."""


def _type(field: Field) -> pa.DataType:
    return _TYPES[field.get_internal_type()]


def _schema() -> pa.Schema:
    columns = [pa.field(each.attname, _type(each)) for each in _MESSAGE]
    for name, (_, fields) in _PARTS.items():
        struct = pa.struct([pa.field(each.attname, _type(each)) for each in fields])
        columns.append(pa.field(name, pa.list_(struct)))
    return pa.schema(columns, metadata={"rme.version": str(VERSION)})


SCHEMA: Final = _schema()


# --- writing --------------------------------------------------------------------------------------
def table_of(records: Sequence[ArchivedMessage]) -> pa.Table:
    """Return messages as a table, in their order."""
    columns = [_column(each, [record.message for record in records]) for each in _MESSAGE]
    for name, (_, fields) in _PARTS.items():
        parts: list[Sequence[models.Model]] = [getattr(record, name) for record in records]
        offsets = [0]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        rows = [row for part in parts for row in part]
        structs = pa.StructArray.from_arrays(
            [_column(each, rows) for each in fields],
            fields=[pa.field(each.attname, _type(each)) for each in fields],
        )
        columns.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _column(field: Field, rows: Sequence[models.Model]) -> pa.Array:
    name = field.attname
    values = [row.__dict__[name] for row in rows]
    match field.get_internal_type():
        case "UUIDField":
            values = [value and str(value) for value in values]
        case "JSONField":
            values = [None if value is None else orjson.dumps(value).decode() for value in values]
    return pa.array(values, _type(field))


def write(table: pa.Table) -> bytes:
    """Return the file of a table."""
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        row_group_size=GROUP,
        compression="zstd",
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(0)],
    )
    return buffer.getvalue()


def merge(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables as one, sorted by id. Columns that one of them lacks are null."""
    return pa.concat_tables(tables, promote_options="default").sort_by("id")


def contacts_of(table: pa.Table) -> set[str]:
    """Return the contacts to whom messages of a table are."""
    deliveries = table.column("deliveries").combine_chunks().flatten()
    return set(deliveries.field("contact_id").to_pylist())


# --- reading --------------------------------------------------------------------------------------
def open_table(content: bytes) -> pa.Table:
    """Return a whole file as a table. Raises pyarrow.ArrowException or OSError for a broken one."""
    return pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True).read(
        use_threads=False
    )


def records_of(table: pa.Table, organization_id: str) -> list[ArchivedMessage]:
    """Return the messages of a table, in its order."""
    return [_record(values, organization_id) for values in table.to_pylist()]


def _record(values: Mapping[str, Any], organization_id: str) -> ArchivedMessage:
    message = _row(Message, _MESSAGE, values, {"organization_id": organization_id})
    parent = {"organization_id": organization_id, "message_id": message.pk}
    deliveries, attempts, events = (
        [_row(model, fields, each, parent) for each in values.get(name) or ()]
        for name, (model, fields) in _PARTS.items()
    )
    return ArchivedMessage(message, deliveries, attempts, events)


def _row(
    model: type[Row], fields: Sequence[Field], values: Mapping[str, Any], derived: Mapping[str, Any]
) -> Any:
    names = {each.attname for each in model._meta.concrete_fields}
    row_values = {
        each.attname: _value(each, values[each.attname])
        for each in fields
        if each.attname in values
    }
    return model(**{name: value for name, value in derived.items() if name in names}, **row_values)


def _value(field: Field, value: Any) -> Any:
    match field.get_internal_type():
        case "UUIDField":
            return value and UUID(value)
        case "JSONField":
            return None if value is None else orjson.loads(value)
    return value
