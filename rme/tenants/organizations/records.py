"""Cached, immutable records of organizations."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rme.core.cache import TtlCache
from rme.tenants.models import Organization


@dataclass(frozen=True, slots=True)
class OrganizationRecord:
    """An organization's settings."""

    id: str
    name: str
    zone: str
    language: str
    region: str
    locale_fallback: bool
    brand_color: str
    calls_per_second: int
    calls_per_day: int
    languages: Sequence[str] = field(default=(), hash=False)
    """The languages that it writes in, besides `language`; none: it has chosen none."""


_records: TtlCache[str, OrganizationRecord] = TtlCache(seconds=30)
_all_ids: TtlCache[str, list[str]] = TtlCache(seconds=60)
FIELDS = (
    "id",
    "name",
    "zone",
    "language",
    "region",
    "locale_fallback",
    "brand_color",
    "calls_per_second",
    "calls_per_day",
    "languages",
)


def get(organization_id: str) -> OrganizationRecord:
    """Return an organization by id. Raise Organization.DoesNotExist."""
    records = get_many([organization_id])
    if organization_id not in records:
        raise Organization.DoesNotExist
    return records[organization_id]


def get_many(organization_ids: Collection[str]) -> dict[str, OrganizationRecord]:
    """Return organizations by id; one query for those that are not cached."""

    def load(ids: list[str]) -> dict[str, OrganizationRecord]:
        possible_ids = [each for each in ids if "\0" not in each]  # PostgreSQL refuses NUL
        rows = Organization.objects.filter(pk__in=possible_ids).values_list(*FIELDS)
        return {row[0]: OrganizationRecord(*row) for row in rows}

    return _records.get_many(organization_ids, load)


def random_id() -> str:
    """Return the id of any organization, as of the last minute; "" if there is none."""
    all_ids = _all_ids.get("", lambda: list(Organization.objects.values_list("pk", flat=True)))
    return random.choice(all_ids) if all_ids else ""
