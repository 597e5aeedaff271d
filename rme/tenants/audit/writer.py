"""The one place that writes the audit, and the erasure of a person's values from it."""

import hashlib
import secrets
from collections.abc import Sequence
from uuid import UUID

import orjson

from rme.core import ids
from rme.core.db import sql
from rme.core.redis.rate_limits import Limit, limiter
from rme.tenants.audit.actors import Actor
from rme.tenants.audit.entries import NewEntry
from rme.tenants.audit.values import LENGTH, Values
from rme.tenants.models import AuditEntry, AuditValues

READ_SECONDS = 60
"""The seconds within which a second reading by one person is not recorded again."""


def record(actor: Actor, entries: Sequence[NewEntry]) -> None:
    """Append entries to the audit by one statement, whatever their number."""
    if not entries:
        return
    rows, values = [], []
    for entry in entries:
        key = ids.new_id()
        content = _values(key, entry)
        values += [content] if content else []
        rows.append(_row(key, actor, entry, content))
    sql.insert({AuditEntry: rows, AuditValues: values})


def record_read(actor: Actor, entry: NewEntry) -> None:
    """Record a reading, once for all requests of a page."""
    key = f"audit:read:{actor.user_id}:{actor.acting_as_id}:{entry.object_id}:{entry.text}"
    if limiter.take(key, Limit(1, READ_SECONDS)).allowed:
        record(actor, [entry])


def _row(
    key: UUID, actor: Actor, entry: NewEntry, content: dict[str, object] | None
) -> dict[str, object]:
    return {
        "id": key,
        "organization_id": entry.organization_id,
        "actor_id": actor.user_id,
        "actor_name": _clean(actor.name, 150),
        "acting_as_id": actor.acting_as_id,
        "acting_as_name": _clean(actor.acting_as_name, 150),
        "action": entry.action,
        "kind": entry.kind,
        "object_id": _clean(entry.object_id, 255),
        "address": _clean(actor.address, 64),
        "request_id": _clean(actor.request_id, 64),
        "user_agent": _clean(actor.user_agent, 200),
        "digest": digest(key, content) if content else "",
    }


def _values(key: UUID, entry: NewEntry) -> dict[str, object] | None:
    """Return the row of what an entry says about its object; None if it says nothing."""
    if not (entry.label or entry.text or entry.changes or entry.reason):
        return None
    return {
        "entry_id": key,
        "organization_id": entry.organization_id,
        "contact_id": _clean(entry.contact_id, 64),
        "salt": secrets.token_hex(16),
        "label": _clean(entry.label, 200),
        "text": _clean(entry.text, LENGTH),
        "changes": _clean_changes(entry.changes),
        "reason": _clean(entry.reason, LENGTH),
    }


def _clean_changes(changes: Values) -> list[list[str]]:
    return [[_clean(each, LENGTH) for each in (name, *pair)] for name, pair in changes.items()]


def _clean(text: str, length: int) -> str:
    """Return a text as PostgreSQL can store it."""
    return text.replace("\0", "")[:length].encode("utf-8", "replace").decode()


def digest(key: UUID, content: dict[str, object]) -> str:
    """Return the digest of an entry's values (SHA-256, with a salt that goes with the values)."""
    parts = [str(key), *(content[name] for name in ("salt", "label", "text", "changes", "reason"))]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def erase(organization_id: str, contact_id: str) -> int:
    """Delete all values that describe a contact; return their number. The entries stay."""
    rows = AuditValues.objects.filter(organization_id=organization_id, contact_id=contact_id)
    return rows.delete()[0] if contact_id else 0
