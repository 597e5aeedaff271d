"""The versions of an organization's templates, by keyset."""

import base64
import binascii
from typing import Any

import orjson
from django.db import connection

from messaging.content.inputs import TemplatesQuery
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.core.db.clock import iso

_KEY = "(t.name, t.language, t.channel, v.version)"
_VERSIONS = f"""
SELECT t.name, t.language, t.channel, t.category, v.state, v.version, v.variables::text,
  coalesce(v.activated_at, v.created_at)
FROM {TemplateVersion._meta.db_table} v JOIN {Template._meta.db_table} t ON t.id = v.template_id
WHERE t.organization_id = %s"""
_COLUMNS = {"name": "t.name", "channel": "t.channel", "language": "t.language", "status": "v.state"}

Key = tuple[str, str, str, int]


def page(organization_id: str, wanted: TemplatesQuery) -> tuple[list[dict[str, Any]], str | None]:
    """Give a page of versions by name, language, channel and version, and the cursor of the next.

    One query.
    """
    conditions = [_VERSIONS]
    parameters: list[Any] = [organization_id]
    for name, column in _COLUMNS.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(f"{column} = %s")
            parameters.append(value)
    if wanted.cursor:
        conditions.append(f"{_KEY} > (%s, %s, %s, %s)")
        parameters += read_cursor(wanted.cursor)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{' AND '.join(conditions)} ORDER BY {_KEY} LIMIT %s", [*parameters, wanted.limit + 1]
        )
        rows = cursor.fetchall()
    shown = [_shown(row) for row in rows[: wanted.limit]]
    following = cursor_of(shown[-1]) if len(rows) > wanted.limit else None
    return shown, following


def _shown(row: tuple[Any, ...]) -> dict[str, Any]:
    name, language, channel, category, state, version, variables, updated_at = row
    return {
        "name": name,
        "language": language,
        "channel": channel,
        "category": category,
        "status": state,
        "version": version,
        "variables": orjson.loads(variables),
        "updatedAt": iso(updated_at),
    }


def cursor_of(version: dict[str, Any]) -> str:
    """Write a cursor: the place after a version, whether it is still there or not."""
    key = [version[name] for name in ("name", "language", "channel", "version")]
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def read_cursor(text: str) -> Key:
    """Read a cursor that an answer gave. Raises InvalidPayload."""
    try:
        key = orjson.loads(base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        key = None
    match key:
        case [str() as name, str() as language, str() as channel, int() as version]:
            texts = (name, language, channel)
            if "\0" not in "".join(texts) and 0 < version < 1 << 31:
                return (*texts, version)
    raise errors.InvalidPayload.at("cursor", "not a cursor of ours")
