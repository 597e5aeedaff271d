"""Calls between cells about people: signed, and answered from the cell's own database."""

from collections.abc import Callable, Mapping
from uuid import UUID

import orjson
import requests
import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from rme.core import cell_calls
from rme.tenants import cells
from rme.tenants.access import sessions
from rme.tenants.models import Organization, User

log = structlog.get_logger(__name__)

ORGANIZATIONS = f"{cell_calls.PATH}organizations"
LOG_OUT = f"{cell_calls.PATH}log-out"
SECONDS = 1.0
"""How long another cell may take: a page of the console waits for it."""
LIMIT = 200
"""The most organizations that are told."""


class CellNotReached(Exception):
    """Another cell does not answer."""


def ask(cell: str, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
    """Return the answer of another cell. Raise CellNotReached."""
    text = orjson.dumps(body)
    purpose = cell_calls.call_purpose("POST", path)
    headers = {
        "Authorization": cell_calls.sign(settings.CELL_SECRET, purpose, text),
        "Content-Type": "application/json",
    }
    try:
        response = requests.post(
            f"{settings.CELLS[cell]}{path}",
            text,
            headers=headers,
            timeout=SECONDS,
            allow_redirects=False,
        )
        response.raise_for_status()
        answer: Mapping[str, object] = orjson.loads(response.content)
    except (requests.RequestException, ValueError) as error:
        raise CellNotReached(cell) from error
    return answer


def signed(
    view: Callable[[Mapping[str, object]], Mapping[str, object]],
) -> Callable[..., HttpResponse]:
    """Return the view of a call between cells: 404 for callers who cannot sign."""

    @csrf_exempt
    def answer(request: HttpRequest) -> HttpResponse:
        purpose = cell_calls.call_purpose(str(request.method), request.path_info)
        header = request.headers.get("Authorization", "")
        if not cell_calls.is_signed(settings.CELL_SECRET, purpose, request.body, header):
            return HttpResponse(status=404)
        try:
            body = orjson.dumps(view(orjson.loads(request.body)))
        except (ValueError, KeyError, TypeError):
            return HttpResponse(status=400)
        return HttpResponse(body, content_type="application/json")

    return answer


def answer_organizations(given: Mapping[str, object]) -> Mapping[str, object]:
    """Return whether a person has an account here, and its organizations. Two statements."""
    users = User.objects.filter(person=UUID(str(given["person"])), is_active=True, is_staff=True)
    user = users.first()
    if user is None:
        return {"account": False, "organizations": []}
    rows = Organization.objects.filter(cells.is_here("pk")).order_by("name", "id")
    if not user.is_superuser:
        rows = rows.filter(memberships__user=user)
    return {"account": True, "organizations": list(rows.values_list("pk", "name")[:LIMIT])}


organizations = signed(answer_organizations)


def end_sessions(given: Mapping[str, object]) -> Mapping[str, object]:
    """End the sessions of a log-in that has ended in another cell; return how many there were."""
    user = User.objects.filter(person=UUID(str(given["person"]))).first()
    return {"ended": sessions.end_chain(user, str(given["chain"])) if user else 0}


log_out = signed(end_sessions)


def log_out_elsewhere(person: UUID, chain: str) -> None:
    """End the sessions of a log-in in all other cells; one that is away keeps its own for hours."""
    others = [name for name in settings.CELLS if name != settings.CELL] if settings.CELL else []
    for cell in others:
        try:
            ask(cell, LOG_OUT, {"person": str(person), "chain": chain})
        except CellNotReached:
            log.warning("log_out.cell_not_reached", cell=cell)
