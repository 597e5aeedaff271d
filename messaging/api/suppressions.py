"""Adding, querying and lifting suppressions."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller, page, request_id
from messaging.api.description import suppressions as description
from messaging.consent import suppressions
from messaging.consent.suppression_inputs import (
    SUPPRESSIONS,
    LiftQuery,
    SuppressionsQuery,
    read_address,
    read_entry,
    read_id,
    read_lift,
)
from messaging.consent.suppressions import SuppressionFilter
from messaging.models import Suppression
from messaging.reports import queries
from rme.core import errors
from rme.core.channels import ALL
from rme.core.db.clock import iso
from rme.core.http.api import ApiView, json_response
from rme.core.http.json import may_hold_nul, refuse_nul
from rme.core.http.parsing import parse

SOURCE = "API"


class SuppressionsView(ApiView):
    """The list of an organization."""

    query_parameters = {
        "GET": SuppressionsQuery.parameters(),
        "DELETE": LiftQuery.parameters(),
    }

    @description.lists()
    def get(self, request: Request) -> HttpResponse:
        """Give a page of entries, newest first."""
        organization = caller(request).organization
        wanted = SuppressionsQuery.read(request.query_params.dict())
        rows, last = suppressions.find(
            organization.id,
            SuppressionFilter(
                channel=wanted.channel,
                address=read_address(wanted.address, wanted.channel or ALL, organization),
                contact_id=wanted.contact_id,
                reason=wanted.reason,
            ),
            limit=wanted.limit,
            before=queries.read_cursor(wanted.cursor) if wanted.cursor else None,
        )
        following = queries.cursor_of(last) if last else None
        found = [_shown(row) for row in rows]
        return page(request, {"suppressions": found}, following)

    @description.adds()
    def post(self, request: Request) -> HttpResponse:
        """Put one entry on the list, or many; a bad one fails no other."""
        body = request.data
        if isinstance(body, dict) and "entries" in body:
            return _add_many(request, parse(SUPPRESSIONS, body).entries)
        (entry,) = _entries(request, [body])
        if isinstance(entry, errors.ApiError):
            raise entry
        ((row, new),) = suppressions.add(entry.organization_id, [entry])
        return json_response(_shown(row), 201 if new else 200)

    @description.lifts()
    def delete(self, request: Request) -> HttpResponse:
        """Lift the entry that the query names."""
        wanted = read_lift(request.query_params.dict(), caller(request).organization)
        return _lift(request, wanted)


class SuppressionView(ApiView):
    """One entry."""

    @description.lifts_by_id()
    def delete(self, request: Request, suppression_id: str) -> HttpResponse:
        """Lift an entry."""
        return _lift(request, read_id(suppression_id))


def _entries(
    request: Request, bodies: list[Any]
) -> list[suppressions.NewSuppression | errors.ApiError]:
    """Read entries, and refuse those of contacts that the organization does not have."""
    read = [_entry(request, body) for body in bodies]
    missing = suppressions.missing_contacts(
        caller(request).organization.id,
        (each.contact_id for each in read if isinstance(each, suppressions.NewSuppression)),
    )
    return [
        errors.NotFound.at("contactId", "no such contact")
        if isinstance(each, suppressions.NewSuppression) and each.contact_id in missing
        else each
        for each in read
    ]


def _entry(request: Request, body: Any) -> suppressions.NewSuppression | errors.ApiError:
    try:
        if may_hold_nul(request._request.body):
            refuse_nul(body)
        return read_entry(body, caller(request).organization, SOURCE)
    except errors.InvalidPayload as error:
        return error


def _add_many(request: Request, bodies: list[Any]) -> HttpResponse:
    read = _entries(request, bodies)
    entries = [each for each in read if isinstance(each, suppressions.NewSuppression)]
    rows = iter(suppressions.add(caller(request).organization.id, entries))
    results = [
        {"index": index, "entry": _shown(next(rows).row)}
        if isinstance(each, suppressions.NewSuppression)
        else {"index": index, "error": each.as_json(request_id(request))}
        for index, each in enumerate(read)
    ]
    counts = {"accepted": len(entries), "rejected": len(read) - len(entries)}
    return json_response({**counts, "results": results}, 201)


def _lift(request: Request, wanted: SuppressionFilter) -> HttpResponse:
    suppressions.lift(caller(request).organization.id, wanted)
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response


def _shown(row: Suppression) -> dict[str, Any]:
    """Return an entry as the API shows it."""
    return {
        "id": str(row.pk),
        "channel": row.channel,
        "address": row.address or None,
        "contactId": row.contact_id or None,
        "reason": row.reason,
        "note": row.note or None,
        "source": row.source,
        "createdAt": iso(row.created_at),
        "expiresAt": iso(row.expires_at),
    }
