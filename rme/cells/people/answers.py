"""Calls between cells about people."""

from collections.abc import Mapping
from uuid import UUID

import structlog

from rme.cells import calls, signatures
from rme.tenants.access import sessions
from rme.tenants.models import Organization, User
from rme.tenants.organizations import served

log = structlog.get_logger(__name__)

ORGANIZATIONS = f"{signatures.PATH}organizations"
LOG_OUT = f"{signatures.PATH}log-out"
LIMIT = 200
"""The most organizations of an answer."""


def answer_organizations(question: Mapping[str, object]) -> Mapping[str, object]:
    """Return whether a person has an account here, and its organizations. Two statements."""
    users = User.objects.filter(person=UUID(str(question["person"])), is_active=True, is_staff=True)
    user = users.first()
    if user is None:
        return {"account": False, "organizations": []}
    rows = Organization.objects.filter(served("pk")).order_by("name", "id")
    if not user.is_superuser:
        rows = rows.filter(memberships__user=user)
    return {"account": True, "organizations": list(rows.values_list("pk", "name")[:LIMIT])}


organizations = calls.signed(answer_organizations)


def end_sessions(question: Mapping[str, object]) -> Mapping[str, object]:
    """End the sessions of a log-in that has ended in another cell; return how many there were."""
    user = User.objects.filter(person=UUID(str(question["person"]))).first()
    return {"ended": sessions.end_chain(user, str(question["chain"])) if user else 0}


log_out = calls.signed(end_sessions)


def log_out_elsewhere(person: UUID, chain: str) -> None:
    """End the sessions of a log-in in all other cells; one that is away keeps its own for hours."""
    for cell in calls.other_cells():
        try:
            calls.ask(cell, LOG_OUT, {"person": str(person), "chain": chain})
        except calls.CellNotReached:
            log.warning("log_out.cell_not_reached", cell=cell)
