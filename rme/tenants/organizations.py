"""Organizations as other code needs them: frozen, and cached."""

import random
from dataclasses import dataclass

from rme.core.cache import TtlCache
from rme.tenants.models import Organization


@dataclass(frozen=True, slots=True)
class OrganizationRecord:
    """An organization's own settings."""

    id: str
    name: str
    zone: str
    language: str
    region: str
    locale_fallback: bool
    brand_color: str
    calls_per_second: int
    calls_per_day: int


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
)


def get(organization_id: str) -> OrganizationRecord:
    """Give an organization by id. Raises Organization.DoesNotExist."""

    def load() -> OrganizationRecord:
        row = Organization.objects.values_list(*FIELDS).get(pk=organization_id)
        return OrganizationRecord(*row)

    record = _records.get(organization_id, load)
    assert record is not None  # load raises for what does not exist
    return record


def random_id() -> str:
    """Return the id of any organization, as of the last minute; "" if there is none."""
    found = _all_ids.get("", lambda: list(Organization.objects.values_list("pk", flat=True)))
    return random.choice(found) if found else ""
