"""The permissions of programs, and the rights that a person needs to grant each one.

People can only grant what they may do themselves. Sending is granted by category: the names in
`Application.send_categories`, or `ANY_CATEGORY`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from rme.core import errors
from rme.tenants.access.roles import Permission
from rme.tenants.models import ANY_CATEGORY, Application

TRANSACTIONAL = "TRANSACTIONAL"


ProgramPermission = Application.Permission

_RIGHTS: Mapping[str, frozenset[Permission]] = {
    ProgramPermission.READ_MESSAGES: frozenset({Permission.SEE_MESSAGES}),
    ProgramPermission.READ_PEOPLE: frozenset(
        {Permission.SEE_PEOPLE, Permission.SEE_ADDRESSES, Permission.SEE_CONTENTS}
    ),
    ProgramPermission.READ_CONSENT: frozenset({Permission.SEE_PEOPLE}),
    ProgramPermission.RECORD_CONSENT: frozenset({Permission.CHANGE_PEOPLE}),
    ProgramPermission.READ_SUPPRESSIONS: frozenset(
        {Permission.SEE_PEOPLE, Permission.SEE_ADDRESSES}
    ),
    ProgramPermission.CHANGE_SUPPRESSIONS: frozenset({Permission.CHANGE_PEOPLE}),
    ProgramPermission.READ_DEVICES: frozenset({Permission.SEE_PEOPLE}),
    ProgramPermission.CHANGE_DEVICES: frozenset({Permission.CHANGE_PEOPLE}),
    ProgramPermission.READ_TEMPLATES: frozenset({Permission.SEE_TEMPLATES}),
    ProgramPermission.READ_WEBHOOKS: frozenset({Permission.SEE_SETTINGS}),
    ProgramPermission.CHANGE_WEBHOOKS: frozenset({Permission.CHANGE_WEBHOOKS}),
    ProgramPermission.READ_HEALTH: frozenset({Permission.SEE_SETTINGS}),
}
"""The rights that a person needs to grant a permission to a LIVE application."""
_TOUCHES_LIVE_DATA_IN_TEST = frozenset(
    {
        ProgramPermission.READ_PEOPLE,
        ProgramPermission.READ_TEMPLATES,
        ProgramPermission.READ_HEALTH,
    }
)
"""Permissions that show live data even to a TEST application; all others only show TEST data."""

BOT_LOOK_UP = frozenset({Permission.SEE_PEOPLE, Permission.SEE_ADDRESSES})
BOT_CREATE = frozenset({Permission.CHANGE_PEOPLE})

_EVENT_PERMISSIONS: Mapping[str, ProgramPermission] = {
    "message": ProgramPermission.READ_MESSAGES,
    "consent": ProgramPermission.READ_CONSENT,
    "suppression": ProgramPermission.READ_SUPPRESSIONS,
    "device": ProgramPermission.READ_DEVICES,
}
"""The permission to read a webhook event, by the part of its type before the dot."""
_EVENT_RIGHTS: Mapping[str, frozenset[Permission]] = {
    "message": frozenset({Permission.SEE_MESSAGES}),
    "consent": frozenset({Permission.SEE_PEOPLE}),
    "suppression": frozenset({Permission.SEE_PEOPLE}),  # the events have no addresses
    "device": frozenset({Permission.SEE_PEOPLE}),
}


def _subject_of(event_type: str) -> str:
    """Return the subject of a webhook event: `message`, `consent`, `suppression` or `device`."""
    return event_type.partition(".")[0]


def event_rights(event_types: Collection[str]) -> frozenset[Permission]:
    """Return the rights that a person needs to subscribe an endpoint to events."""
    return frozenset().union(*(_EVENT_RIGHTS[_subject_of(each)] for each in event_types))


@dataclass(frozen=True, slots=True)
class Grants:
    """The permissions of an application."""

    permissions: frozenset[str]
    categories: frozenset[str]
    """The categories that it may send, or ANY_CATEGORY."""

    @classmethod
    def of(cls, permissions: Collection[str], categories: Collection[str]) -> Self:
        """Return the grants of an application's columns."""
        return cls(frozenset(permissions), frozenset(categories))

    def may_send(self, category: str) -> bool:
        """Return whether messages of a category may be sent and cancelled."""
        return ANY_CATEGORY in self.categories or category in self.categories

    def require(self, permission: str) -> None:
        """Raise Forbidden, with the permission's name, unless it is granted."""
        if permission not in self.permissions:
            raise forbidden(permission)

    def require_send(self, category: str) -> None:
        """Raise Forbidden unless messages of a category may be sent."""
        if not self.may_send(category):
            raise forbidden(f"SEND:{category}")

    def require_events(self, event_types: Collection[str]) -> None:
        """Raise Forbidden unless events of these types may be sent to a webhook endpoint."""
        for event_type in event_types:
            self.require(_EVENT_PERMISSIONS[_subject_of(event_type)])

    def names(self) -> Iterator[str]:
        """Yield the names of the grants in the API, like `SEND:MARKETING` or `READ_CONSENT`."""
        yield from sorted(f"SEND:{each}" for each in self.categories)
        yield from (each.value for each in ProgramPermission if each in self.permissions)

    def rights(self, *, test: bool) -> frozenset[Permission]:
        """Return the rights that a person needs to grant these to an application."""
        permissions = self.permissions & _TOUCHES_LIVE_DATA_IN_TEST if test else self.permissions
        needed = frozenset[Permission]().union(*(_RIGHTS.get(each, _ALL) for each in permissions))
        return needed if test else needed | _send_rights(self.categories)


ALL_PERMISSIONS = tuple(each.value for each in ProgramPermission)
EVERYTHING = Grants.of(ALL_PERMISSIONS, [ANY_CATEGORY])
"""The grants of applications from before permissions existed."""
_ALL = frozenset(Permission)
"""For a permission of a newer release: only superusers hold all rights."""


def _send_rights(categories: Collection[str]) -> frozenset[Permission]:
    if not categories:
        return frozenset()
    other_categories = frozenset(categories) - {TRANSACTIONAL}
    return frozenset({Permission.SEND_ANY if other_categories else Permission.SEND_TRANSACTIONAL})


def forbidden(permission: str) -> errors.Forbidden:
    """Return the error of a call that needs a permission which the application lacks."""
    description = f"The application lacks the permission {permission}."
    return errors.Forbidden(
        f"{description} Ask an owner of the organization to grant it on the application's page.",
        headers={
            "WWW-Authenticate": f'Bearer realm="rme", error="insufficient_scope", '
            f'error_description="{description}"'
        },
    )


def action_rights(actions: Collection[str]) -> frozenset[Permission]:
    """Return the rights that a person needs to issue a key of the bot API with these actions.

    An empty collection means all actions.
    """
    if not actions:
        return BOT_LOOK_UP | BOT_CREATE
    needed = (BOT_CREATE if each.startswith("Create_") else BOT_LOOK_UP for each in actions)
    return frozenset().union(*needed)
