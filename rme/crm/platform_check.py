"""Checks of a platform for its admin pages: its description, and error texts."""

from rme.crm import platforms
from rme.crm.connectors import REMOTE
from rme.crm.connectors.base import (
    Deadline,
    MappingWrong,
    PlatformError,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
)
from rme.crm.connectors.conditions import Description
from rme.crm.connectors.mapped import MappedConnector

CHECK_SECONDS = 20.0
_TEXTS = {
    PlatformLimit: "The platform's quota is used up.",
    PlatformSlow: "The platform did not answer in time.",
    PlatformRefused: "The platform does not take these credentials.",
    MappingWrong: "The settings or the mapping cannot be read.",
}


def describe(record: platforms.PlatformRecord) -> Description:
    """Return the platform's description of the objects in its mapping. Raise PlatformError."""
    connector: MappedConnector = REMOTE[record.kind](record.organization_id, platform=record)
    objects = [each.object for each in record.mappings.values()]
    return connector.describe(objects, deadline=Deadline.after(CHECK_SECONDS))


def try_describe(record: platforms.PlatformRecord) -> Description | PlatformError:
    """Return the platform's description of the objects in its mapping, or the error."""
    try:
        return describe(record)
    except PlatformError as error:
        return error


def error_text(error: PlatformError) -> str:
    """Return an error as a text for people, without the platform's own text."""
    return _TEXTS.get(type(error), "The platform cannot be reached.")
