"""Change the state and the order of provider accounts, and delete them; with audit."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Case, F, PositiveSmallIntegerField, Value, When

from messaging.models import ProviderAccount
from messaging.policy import connection_check, organization_policy
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

State = ProviderAccount.State


class RoutingPlace(NamedTuple):
    """The place of an account in the routing order."""

    priority: int
    weight: int


def is_proven(row: ProviderAccount) -> bool:
    """Return whether the last check or test of an account found that it works."""
    return row.checked_at is not None and not row.check_problem


def needs_check(row: ProviderAccount) -> bool:
    """Return whether an account was never active, and no check found that it works."""
    return row.state == State.DRAFT and not is_proven(row)


def change(rows: Sequence[ProviderAccount], state: str, actor: Actor, reason: str = "") -> None:
    """Store another state of accounts, and why they send no more. Other processes see it within
    two seconds.
    """
    with transaction.atomic():
        accounts = ProviderAccount.objects.filter(pk__in=[row.pk for row in rows])
        accounts.update(state=state, state_reason="" if state == State.ACTIVE else reason)
        changes = [
            audit.about(
                row, Action.CHANGED, changes={"state": [row.state, str(state)]}, reason=reason
            )
            for row in rows
        ]
        audit.record(actor, changes)
    for row in rows:
        organization_policy.forget(row.organization_id)


def check_and_activate(organization_id: str, account_id: int, actor: Actor) -> Mapping[str, Any]:
    """Check an account's connection, and activate the account if the check finds that it works.

    It waits for the provider's host, as `connection_check.check` does.
    """
    result = connection_check.check(organization_id, account_id, actor)
    rows = ProviderAccount.objects.select_related("organization")
    row = rows.get(pk=account_id, organization_id=organization_id)
    if row.state == State.DRAFT and is_proven(row):
        change([row], State.ACTIVE, actor)
    return result


def delete(row: ProviderAccount, actor: Actor) -> None:
    """Delete an account with its settings."""
    with transaction.atomic():
        entry = audit.about(row, Action.DELETED, changes=audit.values_of(row, ()))
        audit.record(actor, [entry])
        row.delete()
    organization_policy.forget(row.organization_id)


def reorder(
    rows: Sequence[ProviderAccount], places: Mapping[int, RoutingPlace], actor: Actor, reason: str
) -> list[ProviderAccount]:
    """Store the places that differ, by one statement; return the accounts that were moved."""
    moved = [row for row in rows if places.get(row.pk, _place(row)) != _place(row)]
    if not moved:
        return []
    new = {
        name: Case(
            *(When(pk=row.pk, then=Value(getattr(places[row.pk], name))) for row in moved),
            default=F(name),
            output_field=PositiveSmallIntegerField(),
        )
        for name in RoutingPlace._fields
    }
    with transaction.atomic():
        ProviderAccount.objects.filter(pk__in=[row.pk for row in moved]).update(**new)
        entries = [
            audit.about(row, Action.CHANGED, changes=_changes(row, places[row.pk]), reason=reason)
            for row in moved
        ]
        audit.record(actor, entries)
    for organization_id in {row.organization_id for row in moved}:
        organization_policy.forget(organization_id)
    return moved


def _place(row: ProviderAccount) -> RoutingPlace:
    return RoutingPlace(row.priority, row.weight)


def _changes(row: ProviderAccount, place: RoutingPlace) -> audit.Values:
    return {
        name: [str(old), str(new)]
        for name, old, new in zip(RoutingPlace._fields, _place(row), place, strict=True)
        if old != new
    }
