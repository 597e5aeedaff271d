"""The names of IANA time zones."""

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _


def is_zone(name: str) -> bool:
    """Return whether a name is a zone of the IANA database."""
    return name in _names()


@cache
def _names() -> frozenset[str]:
    """Return the names of all zones: reading them from the files takes 6 ms of CPU."""
    return frozenset(available_timezones())


@cache
def choices() -> list[str]:
    """Return the zones that a person chooses from: those of regions, by name."""
    return sorted(name for name in _names() if "/" in name and not name.startswith(NOT_OFFERED))


NOT_OFFERED = ("Etc/", "SystemV/", "US/", "Canada/", "Brazil/", "Chile/", "Mexico/", "posix/")
"""The beginnings of zones that have another name, or are offsets alone."""


def validate_zone(name: str) -> None:
    """Raise ValidationError for a name that is no IANA zone."""
    if not is_zone(name):
        raise ValidationError(_("%(name)s is not an IANA time zone.") % {"name": name}, code="zone")


def zone(name: str | None, fallback: str = "UTC") -> ZoneInfo:
    """Return the zone of a name, or the fallback for a name that is no zone."""
    return ZoneInfo(name if name and is_zone(name) else fallback)
