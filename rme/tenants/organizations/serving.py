"""Whether this deployment serves an organization: always, unless it is one of several cells."""

from django.db.models import BooleanField, F, Func

from rme.core.placement import places


def require_served(organization_id: str, *, at_once: bool = False) -> None:
    """Raise Misdirected for an organization that is served elsewhere, Unavailable while it moves.

    With `at_once` the answer is as of now, which takes a statement.
    """
    places().require_here(organization_id, at_once=at_once)


def is_served(organization_id: str) -> bool:
    """Return whether calls for an organization are answered, and its rows changed, here."""
    return places().is_written(organization_id)


def all_served() -> bool:
    """Return whether no organization moves or has moved."""
    return not places().absent()


def served(path: str = "organization_id", *, leaving: bool = False) -> Func:
    """Return the condition that workers here do the work of a row's organization.

    With `leaving` it may be about to leave: what has begun for it is ended.
    """
    condition = places().here("%(expressions)s", leaving=leaving)
    return Func(F(path), template=condition, output_field=BooleanField())
