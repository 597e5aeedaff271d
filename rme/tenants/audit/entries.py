"""New entries: of rows, of deletions, and of people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from rme.tenants.audit.values import Values, values_of
from rme.tenants.models import AuditEntry, Membership, Organization, User

Action = AuditEntry.Action
PERSON = User._meta.label_lower
Actions = tuple[Action, Action, Action]
"""What it is called to add, to change and to delete a row."""
_KEY: Actions = (Action.KEY_CREATED, Action.KEY_CHANGED, Action.KEY_REVOKED)
_ACTIONS: Mapping[str, Actions] = {
    "tenants.apikey": _KEY,
    "tenants.application": _KEY,
    "tenants.applicationkey": _KEY,
    "tenants.invitation": (Action.INVITED, Action.CHANGED, Action.WITHDRAWN),
    "tenants.membership": (Action.ROLE_GRANTED, Action.ROLE_CHANGED, Action.ROLE_TAKEN),
}


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What is recorded about one object, except the actor."""

    action: Action
    organization_id: str | None = None
    kind: str = ""
    object_id: str = ""
    label: str = ""
    text: str = ""
    changes: Values = field(default_factory=dict)
    reason: str = ""
    contact_id: str = ""
    """The contact whom label, text, changes and reason describe."""


def actions_of(model: type[Model]) -> Actions:
    """Return what it is called to add, to change and to delete a row of a model."""
    return _ACTIONS.get(model._meta.label_lower, (Action.ADDED, Action.CHANGED, Action.DELETED))


def about(
    row: Model, action: Action, organization_id: str | None = None, **fields: Any
) -> NewEntry:
    """Return an entry about a row. Without `organization_id` the row names its organization."""
    owner = row.pk if isinstance(row, Organization) else getattr(row, "organization_id", None)
    contact_id = getattr(row, "contact_id", None)
    return NewEntry(
        action,
        organization_id or owner,
        kind=row._meta.label_lower,
        **{
            "object_id": str(row.pk),
            "label": str(row),
            "contact_id": "" if contact_id is None else str(contact_id),
            **fields,
        },
    )


def deletions(rows: Iterable[Model], reason: str) -> list[NewEntry]:
    """Return the entries of rows that are deleted, with their values."""
    return [
        about(row, actions_of(type(row))[2], changes=values_of(row, ()), reason=reason)
        for row in rows
    ]


def about_person(user: User, action: Action, **fields: Any) -> list[NewEntry]:
    """Return an entry about a user for each organization in which the user has a role.

    A user without a role concerns the deployment. One query.
    """
    rows = Membership.objects.filter(user_id=user.pk).order_by("organization_id")
    organization_ids: list[str | None] = [*rows.values_list("organization_id", flat=True)]
    name = user.get_username()
    return [
        NewEntry(action, each, kind=PERSON, object_id=str(user.pk), label=name, **fields)
        for each in organization_ids or [None]
    ]


def about_account(username: str, action: Action, text: str) -> list[NewEntry]:
    """Return the entries about the account with a name that was typed. One query.

    An unknown name is not kept: people may type a password there by mistake.
    """
    rows = User.objects.filter(username=username).order_by("memberships__organization_id")
    people = rows.values_list("pk", "username", "memberships__organization_id")
    return [
        NewEntry(action, owner, kind=PERSON, object_id=str(pk), label=name, text=text)
        for pk, name, owner in people
    ] or [NewEntry(action, text=f"unknown account, {text}")]
