"""Which platform an organization has, with its settings and its mapping: read once in 30 s."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rme.core.cache import TtlCache
from rme.crm import mapping
from rme.crm.models_platform import Platform

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class PlatformRecord:
    """An organization's platform. `problem` says why its settings or its mapping cannot be used.

    `settings` are secret in part, so they are not shown.
    """

    organization_id: str
    kind: str
    region: str = "US"
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    mappings: mapping.Mappings = field(default_factory=dict, repr=False)
    problem: str = ""


_records: TtlCache[str, PlatformRecord] = TtlCache(seconds=30)


def get(organization_id: str) -> PlatformRecord:
    """Give an organization's platform: the embedded one where it has no other."""
    record = _records.get(organization_id, lambda: _load(organization_id))
    assert record is not None  # load gives one always
    return record


def forget(organization_id: str) -> None:
    """Read a platform anew at its next use (other processes: within 30 s)."""
    _records.forget(organization_id)


def _load(organization_id: str) -> PlatformRecord:
    row = Platform.objects.filter(organization_id=organization_id)
    found = row.values_list("kind", "credentials", "mapping", "organization__region").first()
    if found is None or found[0] == EMBEDDED:
        return PlatformRecord(organization_id, EMBEDDED)
    return record(organization_id, *found)


def record(
    organization_id: str, kind: str, credentials: str, raw: Any, region: str
) -> PlatformRecord:
    """Make a record of what is stored. What cannot be read is said in it, and never raised."""
    try:
        settings = orjson.loads(credentials or "{}")
        mappings = mapping.parse(raw)
    except ValueError as error:  # no JSON, or no mapping
        return PlatformRecord(organization_id, kind, region, problem=str(error))
    return PlatformRecord(organization_id, kind, region, settings, mappings)
