"""What a cell's database says of itself: its name, its number, and what opens its secrets.

Integer keys must not meet those of another cell. So the sequences of the cell with number N begin
at N · 2⁴⁰: there is room for a million million rows, and every key stays exact in JSON (2⁵³).
"""

import hashlib
import hmac
from typing import Any, NamedTuple

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import BigAutoField

from rme.cells.moving.databases import Connection
from rme.core.ids import KEY_RANGE
from rme.tenants.models import Cell

NUMBERS = 4096
"""The most cells: their keys stay below 2⁵³."""


ARCHIVE = "ARCHIVE_URL"
_IS_ARCHIVED = "SELECT EXISTS (SELECT FROM messaging_archivefile WHERE organization_id = %s)"
_SEQUENCES = """
SELECT sequence FROM (
  SELECT CASE WHEN to_regclass(name) IS NOT NULL THEN pg_get_serial_sequence(name, attribute) END
  FROM unnest(%s::text[], %s::text[]) given(name, attribute)
) found(sequence) WHERE sequence IS NOT NULL
"""
Cursor = CursorWrapper | psycopg.Cursor[tuple[Any, ...]]


class NotReady(ImproperlyConfigured):
    """Two cells between which nothing can move; the message says why."""


class CellRow(NamedTuple):
    """The row of `Cell`."""

    name: str
    number: int
    keys: dict[str, list[str]]


def fingerprints() -> dict[str, list[str]]:
    """Return the fingerprints of the secrets that rows need, those that encrypt and sign first."""
    secrets = {
        "FIELD_KEYS": settings.FIELD_KEYS,
        "SECRET_KEY": [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS],
        "VAPID_PRIVATE_KEY": [settings.VAPID_PRIVATE_KEY],
        ARCHIVE: [_archive()],
    }
    return {name: [_fingerprint(name, each) for each in values] for name, values in secrets.items()}


def _archive() -> str:
    """Return what names the archive's store; "" without one."""
    store = settings.ARCHIVE
    return f"{store.options.get('endpoint', '')} {store.url.rstrip('/')}" if store else ""


def _fingerprint(name: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"rme.cell:{name}".encode(), hashlib.sha256).hexdigest()[:32]


def prepare(number: int | None) -> list[str]:
    """Store this cell's row and let its keys begin with its number; return what was done.

    Without a number only the fingerprints are stored anew. Raise NotReady.
    """
    if not settings.CELL:
        raise NotReady("CELL is not set.")
    old_cell = Cell.objects.filter(pk=Cell.ONLY).first()
    if number is None and old_cell is None:
        raise NotReady("This cell has no number yet.")
    if old_cell and number not in (None, old_cell.number):
        raise NotReady(f"This cell has the number {old_cell.number}, and its keys begin with it.")
    cell_number = old_cell.number if number is None and old_cell else number or 0
    if not 0 <= cell_number < NUMBERS:
        raise NotReady(f"A number is from 0 to {NUMBERS - 1}.")
    with transaction.atomic():
        sequences = _begin_sequences(cell_number)
        Cell.objects.update_or_create(
            pk=Cell.ONLY,
            defaults={"name": settings.CELL, "number": cell_number, "keys": fingerprints()},
        )
    return sequences


def begin_sequences() -> list[str]:
    """Begin the sequences of new tables with this cell's number; return them.

    For the end of `migrate`: before the table of `Cell` is there, and in a cell that is not
    prepared, nothing is done. Raise NotReady.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [Cell._meta.db_table])
        if cursor.fetchone() == (None,):
            return []
    row = Cell.objects.filter(pk=Cell.ONLY).first()
    return _begin_sequences(row.number) if row else []


def _begin_sequences(number: int) -> list[str]:
    """Begin the sequences that are below a number's range in it; return them. Raise NotReady."""
    with connection.cursor() as cursor:
        below = _below_range(cursor, number)
        for sequence in below:
            cursor.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {number * KEY_RANGE + 1}")
    return below


def _below_range(cursor: Cursor, number: int) -> list[str]:
    """Return the sequences that give keys below a number's range. Raise NotReady beyond it."""
    keys = [
        (model._meta.db_table, model._meta.pk.column)
        for model in apps.get_models(include_auto_created=True)
        if isinstance(model._meta.pk, BigAutoField)
    ]
    cursor.execute(_SEQUENCES, [list(each) for each in zip(*keys, strict=True)])
    names = [name for (name,) in cursor.fetchall()]
    cursor.execute(" UNION ALL ".join(f"SELECT '{each}', last_value FROM {each}" for each in names))
    last = dict(cursor.fetchall())
    if beyond := [each for each in names if last[each] >= (number + 1) * KEY_RANGE]:
        raise NotReady(f"{beyond[0]} is beyond the keys of the number {number} already.")
    return [each for each in names if last[each] < number * KEY_RANGE]


def require_movable(source: Connection, target: Connection, target_name: str) -> CellRow:
    """Return the source's row. Raise NotReady unless its organizations work in the target."""
    source_row, target_row = _row(source, "This cell"), _row(target, f"The cell {target_name}")
    if target_row.name != target_name:
        raise NotReady(f"The database of MOVE_DATABASE_URL is that of the cell {target_row.name}.")
    if source_row.name == target_row.name or source_row.number == target_row.number:
        raise NotReady("Both databases are those of one cell, or their numbers are the same.")
    for setting, source_keys in source_row.keys.items():
        if setting == ARCHIVE:  # which not every organization needs
            continue
        needed = source_keys if setting == "FIELD_KEYS" else source_keys[:1]
        if not set(needed) <= set(target_row.keys.get(setting, [])):
            raise NotReady(f"{target_name} has not the {setting} of this cell, which rows need.")
    steps = [
        {tuple(row) for row in side.execute("SELECT app, name FROM django_migrations").fetchall()}
        for side in (source, target)
    ]
    if steps[0] != steps[1]:
        raise NotReady("The two databases have not the same migrations.")
    for side, row in ((source, source_row), (target, target_row)):
        _require_range(side, row)
    return source_row


def require_archive(
    source: Connection, target: Connection, target_name: str, organization_id: str
) -> None:
    """Raise NotReady if an organization has archived messages that the target could not read."""
    if source.execute(_IS_ARCHIVED, [organization_id]).fetchone() == (False,):
        return
    source_archive, target_archive = (_row(side, "").keys.get(ARCHIVE) for side in (source, target))
    if not source_archive or source_archive != target_archive:
        raise NotReady(
            f"It has archived messages, and {target_name} is not known to read the store of this "
            f"cell: set the same {ARCHIVE}, and give `manage.py prepare_cell` in both."
        )


def _require_range(side: Connection, row: CellRow) -> None:
    """Raise NotReady if a cell gives keys that are not of its number."""
    with side.cursor() as cursor:
        if below := _below_range(cursor, row.number):
            raise NotReady(
                f"{below[0]} of the cell {row.name} gives keys that other cells give too: "
                "run `manage.py migrate` there."
            )


def _row(side: Connection, whose: str) -> CellRow:
    row = side.execute("SELECT name, number, keys FROM tenants_cell").fetchone()
    if row is None:
        raise NotReady(f"{whose} is not prepared: run `manage.py prepare_cell --number N` there.")
    return CellRow(*row)
