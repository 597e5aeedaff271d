"""What a cell's database says of itself: its name, its number, and what opens its secrets.

Integer keys must not meet those of another cell. So the sequences of the cell with number N begin
at N · 2⁴⁰: there is room for a million million rows, and every key stays exact in JSON (2⁵³).
"""

import hashlib
import hmac
from typing import NamedTuple

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import BigAutoField

from rme.tenants.cells.identifiers import KEY_RANGE
from rme.tenants.cells.moving.databases import Connection
from rme.tenants.models import Cell

NUMBERS = 4096
"""The most cells: their keys stay below 2⁵³."""


class NotReady(Exception):
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
    }
    return {name: [_fingerprint(name, each) for each in found] for name, found in secrets.items()}


def _fingerprint(name: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"rme.cell:{name}".encode(), hashlib.sha256).hexdigest()[:32]


def prepare(number: int | None) -> list[str]:
    """Store this cell's row and let its keys begin with its number; return what was done.

    Without a number only the fingerprints are stored anew. Raise NotReady.
    """
    if not settings.CELL:
        raise NotReady("CELL is not set.")
    before = Cell.objects.filter(pk=Cell.ONLY).first()
    if number is None and before is None:
        raise NotReady("This cell has no number yet.")
    if before and number not in (None, before.number):
        raise NotReady(f"This cell has the number {before.number}, and its keys begin with it.")
    own = before.number if number is None and before else number or 0
    if not 0 <= own < NUMBERS:
        raise NotReady(f"A number is from 0 to {NUMBERS - 1}.")
    with transaction.atomic():
        begun = _begin_sequences(own)
        Cell.objects.update_or_create(
            pk=Cell.ONLY, defaults={"name": settings.CELL, "number": own, "keys": fingerprints()}
        )
    return begun


def _begin_sequences(number: int) -> list[str]:
    """Let the sequences below a number's range begin there; return them. Raise NotReady."""
    begun = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            key = model._meta.pk
            if not isinstance(key, BigAutoField):
                continue
            name = [model._meta.db_table, key.column]
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", name)
            (sequence,) = cursor.fetchone()
            cursor.execute(f"SELECT last_value FROM {sequence}")
            (last,) = cursor.fetchone()
            if last >= (number + 1) * KEY_RANGE:
                raise NotReady(f"{sequence} is beyond the keys of the number {number} already.")
            if last < number * KEY_RANGE:
                cursor.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {number * KEY_RANGE + 1}")
                begun.append(str(sequence))
    return begun


def require_movable(source: Connection, target: Connection, target_name: str) -> CellRow:
    """Return the source's row. Raise NotReady unless its organizations work in the target."""
    own, other = _row(source, "This cell"), _row(target, f"The cell {target_name}")
    if other.name != target_name:
        raise NotReady(f"The database of MOVE_DATABASE_URL is that of the cell {other.name}.")
    if own.name == other.name or own.number == other.number:
        raise NotReady("Both databases are those of one cell, or their numbers are the same.")
    for setting, found in own.keys.items():
        needed = found if setting == "FIELD_KEYS" else found[:1]
        if not set(needed) <= set(other.keys.get(setting, [])):
            raise NotReady(f"{target_name} has not the {setting} of this cell, which rows need.")
    steps = [
        {tuple(row) for row in side.execute("SELECT app, name FROM django_migrations").fetchall()}
        for side in (source, target)
    ]
    if steps[0] != steps[1]:
        raise NotReady("The two databases have not the same migrations.")
    return own


def _row(side: Connection, whose: str) -> CellRow:
    row = side.execute("SELECT name, number, keys FROM tenants_cell").fetchone()
    if row is None:
        raise NotReady(f"{whose} is not prepared: run `manage.py prepare_cell --number N` there.")
    return CellRow(*row)
