"""Each organization's platform with its settings and its mapping, cached for 30 s."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rme.core.cache import TtlCache
from rme.core.db.encrypted_fields import UnreadableSecret
from rme.crm import mapping
from rme.crm.models import Platform

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class PlatformRecord:
    """An organization's platform.

    `problem` is the reason why its settings or mapping cannot be used, or empty. `settings` are
    partly secret, so the repr leaves them out.
    """

    organization_id: str
    kind: str
    region: str = "US"
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    mappings: mapping.Mappings = field(default_factory=dict, repr=False)
    problem: str = ""


_records: TtlCache[str, PlatformRecord] = TtlCache(seconds=30)


def get(organization_id: str) -> PlatformRecord:
    """Return an organization's platform: the embedded one if it has no other."""
    record = _records.get(organization_id, lambda: _load(organization_id))
    assert record is not None  # _load always returns one
    return record


def forget(organization_id: str) -> None:
    """Drop a platform from the cache of this process; others read it again within 30 s."""
    _records.forget(organization_id)


def _load(organization_id: str) -> PlatformRecord:
    rows = Platform.objects.filter(organization_id=organization_id)
    row = rows.select_related("organization").first()
    if row is None or row.kind == EMBEDDED:
        return PlatformRecord(organization_id, EMBEDDED)
    return of_row(row)


def of_row(row: Platform) -> PlatformRecord:
    """Return the record of a row; it has a `problem` if it can't be decrypted or read."""
    region = row.organization.region
    try:
        credentials = row.credentials
    except UnreadableSecret as error:
        return PlatformRecord(row.organization_id, row.kind, region, problem=str(error))
    return record(row.organization_id, row.kind, credentials, row.mapping, region)


def record(
    organization_id: str, kind: str, credentials: str, raw: object, region: str
) -> PlatformRecord:
    """Return the record of a stored platform, with `problem` set if it cannot be read."""
    try:
        settings = orjson.loads(credentials or "{}")
        mappings = mapping.parse(raw)
    except ValueError as error:  # invalid JSON, or an invalid mapping
        return PlatformRecord(organization_id, kind, region, problem=str(error))
    return PlatformRecord(organization_id, kind, region, settings, mappings)
