"""Asking a platform what it has, for the people who connect it."""

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
_TOLD = {
    PlatformLimit: "The platform's quota is used up.",
    PlatformSlow: "The platform did not answer in time.",
    PlatformRefused: "The platform does not take these credentials.",
    MappingWrong: "The settings or the mapping cannot be read.",
}


def describe(record: platforms.PlatformRecord) -> Description:
    """Ask a platform for what its mapping names. Raises PlatformError."""
    connector: MappedConnector = REMOTE[record.kind](record.organization_id, platform=record)
    objects = [each.object for each in record.mappings.values()]
    return connector.describe(objects, deadline=Deadline.after(CHECK_SECONDS))


def try_describe(record: platforms.PlatformRecord) -> Description | PlatformError:
    """Ask a platform for what its mapping names; gives what it said, or what went wrong."""
    try:
        return describe(record)
    except PlatformError as error:
        return error


def error_text(error: PlatformError) -> str:
    """Say what went wrong in words; never the platform's own."""
    return _TOLD.get(type(error), "The platform cannot be reached.")
