"""The suppression list: entries are added, and replace weaker ones, by one statement."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from messaging.models import Suppression, SuppressionInTest
from rme.core.db import sql

STRENGTH = ["COMPLAINT", "STOP", "HARD_BOUNCE"]
"""Reasons that replace a weaker one, strongest first."""
LAYERS: Mapping[bool, type[Suppression]] = {
    False: Suppression,
    True: cast(type[Suppression], SuppressionInTest),  # the columns are the same
}
"""The list of live sends, and the TEST layer above it."""

_COLUMNS = "id, organization_id, channel, address, contact_id, reason, note, source, expires_at"
_EXPIRED = "t.expires_at <= now()"
_STRENGTH = f"coalesce(array_position(ARRAY{STRENGTH}, {{}}.reason::text), 99)"
# There are two unique indexes, and ON CONFLICT can name only one: so one statement has two inserts.
_INSERT = f"""
INSERT INTO {{table}} AS t ({_COLUMNS}) SELECT {_COLUMNS} FROM input WHERE NOT ({{name}} = '')
ON CONFLICT (organization_id, {{name}}, channel) WHERE NOT ({{name}} = '') DO UPDATE SET
  id = CASE WHEN {_EXPIRED} THEN excluded.id ELSE t.id END,
  created_at = CASE WHEN {_EXPIRED} THEN excluded.created_at ELSE t.created_at END,
  reason = excluded.reason, source = excluded.source,
  note = CASE WHEN {_EXPIRED} OR NOT (excluded.note = '') THEN excluded.note ELSE t.note END,
  expires_at = CASE WHEN {_EXPIRED} THEN excluded.expires_at
    WHEN t.expires_at IS NULL OR excluded.expires_at IS NULL THEN NULL
    ELSE greatest(t.expires_at, excluded.expires_at) END
WHERE {_EXPIRED} OR {_STRENGTH.format("excluded")} < {_STRENGTH.format("t")}
RETURNING id, organization_id, channel, contact_id, reason, source, created_at, expires_at
"""


def _upsert_into(table: str) -> str:
    by_address, by_contact = (
        _INSERT.format(table=table, name=name) for name in ("address", "contact_id")
    )
    return f"""
WITH input AS MATERIALIZED (
  SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{table}, %(rows)s)),
by_address AS ({by_address}),
by_contact AS ({by_contact})
SELECT * FROM by_address UNION ALL SELECT * FROM by_contact
"""


# Plan: the two unique indexes.
# Run by: upsert, for consent.suppressions
UPSERT = {is_test: _upsert_into(model._meta.db_table) for is_test, model in LAYERS.items()}
"""The statement of each layer."""


def upsert(rows: Sequence[sql.Row], *, test: bool) -> list[tuple[Any, ...]]:
    """Add entries; return the id, organization, channel, contact, reason, source, creation and
    expiry of those that are new or changed. For bounces and complaints, too.
    """
    return sql.fetch(UPSERT[test], {"rows": sql.as_json(rows)})
