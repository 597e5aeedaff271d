"""IANA time zones, as far as they are data: which names exist."""

from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError


def is_zone(name: str) -> bool:
    """Say whether a name is a zone of the IANA database."""
    return name in available_timezones()


def validate_zone(name: str) -> None:
    """Refuse a name that is no IANA zone."""
    if not is_zone(name):
        raise ValidationError(f"{name} is not an IANA time zone.", code="zone")


def zone(name: str | None, fallback: str = "UTC") -> ZoneInfo:
    """Give a zone by name; a name that is none gives the fallback's."""
    return ZoneInfo(name if name and is_zone(name) else fallback)
