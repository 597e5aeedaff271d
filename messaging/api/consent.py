"""Recording and reading consent."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller, page, request_id
from messaging.api.description import consent as description
from messaging.consent import entries
from messaging.consent.entry_inputs import CONSENT, CONSENT_ENTRIES, ConsentQuery
from messaging.models import ConsentEntry
from messaging.reports import queries
from rme.core import errors
from rme.core.db.clock import iso
from rme.core.http.api import ApiView, json_response
from rme.core.http.json import may_hold_nul, refuse_nul
from rme.core.http.parsing import parse


class ConsentView(ApiView):
    """The consent ledger."""

    query_parameters = {"GET": ConsentQuery.parameters()}

    @description.records()
    def post(self, request: Request) -> HttpResponse:
        """Record one decision, or many; a bad one of many fails no other."""
        body = request.data
        many = isinstance(body, dict) and "entries" in body
        items = parse(CONSENT_ENTRIES, body).entries if many else [body]
        look = may_hold_nul(request._request.body)
        results = entries.record(
            caller(request), [_read(item, look_for_nul=look) for item in items]
        )
        if many:
            return json_response(_each(results, request_id(request)), 201)
        (only,) = results
        if isinstance(only, errors.ApiError):
            raise only
        return json_response(_shown(only), 201)

    @description.lists()
    def get(self, request: Request) -> HttpResponse:
        """Give a page of the ledger, newest first."""
        wanted = ConsentQuery.read(request.query_params.dict())
        found, last = entries.page(
            caller(request).organization.id,
            entries.LedgerFilter(
                contact_id=wanted.contact_id,
                channel=wanted.channel,
                category=wanted.category,
                history=wanted.history,
                limit=wanted.limit,
                cursor=queries.read_cursor(wanted.cursor) if wanted.cursor else None,
            ),
        )
        following = queries.cursor_of(last) if last else None
        return page(request, {"consent": [_shown(entry) for entry in found]}, following)


def _read(item: Any, *, look_for_nul: bool) -> entries.CheckedInput:
    try:
        if look_for_nul:
            refuse_nul(item)
        return parse(CONSENT, item)
    except errors.InvalidPayload as error:
        return error


def _each(results: list[ConsentEntry | errors.ApiError], identifier: str) -> dict[str, Any]:
    shown = [
        {"index": index, "error": result.as_json(identifier)}
        if isinstance(result, errors.ApiError)
        else {"index": index, "entry": _shown(result)}
        for index, result in enumerate(results)
    ]
    taken = sum("entry" in each for each in shown)
    return {"accepted": taken, "rejected": len(shown) - taken, "results": shown}


def _shown(entry: ConsentEntry) -> dict[str, Any]:
    """Return an entry as the API shows it."""
    return {
        "id": str(entry.pk),
        "contactId": entry.contact_id,
        "channel": entry.channel,
        "category": entry.category,
        "status": entry.status,
        "source": entry.source,
        "occurredAt": iso(entry.occurred_at),
        "recordedAt": iso(entry.recorded_at),
    }
