"""Consent: POST and GET /consent."""

from typing import Annotated

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field, RootModel
from rest_framework.request import Request

from messaging.api.common import (
    AnyChannelValue,
    EntriesOutput,
    ErrorObject,
    Identifier,
    Output,
    Time,
    answer,
    bulk,
    caller,
    entries_of,
    only,
    page,
    read_each,
    request_id,
)
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.consent import entries
from messaging.consent.entry_inputs import CONSENT, ConsentBody, ConsentQuery
from messaging.models import ConsentEntry
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import ENUMERATED, cursor_of, read_cursor
from rme.core.http.parsing import parse


class ConsentOutput(Output):
    """One entry of the ledger."""

    id: Identifier
    contact_id: str
    channel: AnyChannelValue
    category: str
    status: Annotated[ConsentEntry.Status, ENUMERATED]
    source: Annotated[ConsentEntry.Source, ENUMERATED]
    occurred_at: Time = Field(description="ISO 8601, UTC.")
    recorded_at: Time = Field(description="ISO 8601, UTC.")


class ConsentItemOutput(Output):
    """The entry made of one item, or the item's error."""

    index: int
    entry: ConsentOutput | None = None
    error: ErrorObject | None = None


class ConsentEntriesOutput(EntriesOutput):
    results: list[ConsentItemOutput]


class ConsentAnswer(RootModel[ConsentOutput | ConsentEntriesOutput]):
    """The entry, or one result for each of many."""


class ConsentPageOutput(Output):
    consent: list[ConsentOutput]
    next_cursor: str | None


class ConsentView(ApiView):
    """The consent ledger."""

    query_parameters = {"GET": ConsentQuery.parameters()}

    @extend_schema(
        operation_id="record_consent",
        summary="Record what one person decided, or up to 500 decisions",
        request={"application/json": ConsentBody},
        responses=responses({201: ConsentAnswer}, (*WITH_BODY, errors.NotFound)),
    )
    def post(self, request: Request) -> HttpResponse:
        """Record one decision, or many; a bad one of many fails no other."""
        items, many = entries_of(request)
        read = read_each(request, items, lambda item: parse(CONSENT, item))
        results = entries.record(caller(request), read)
        if many:
            return bulk(ConsentEntriesOutput, results, lambda each: each, request_id(request))
        return answer(ConsentOutput.model_validate(only(results)), 201)

    @extend_schema(
        operation_id="list_consent",
        summary="Read the consent ledger, newest first",
        description="Without `history`: for each contact, channel and category the entry that "
        "decides now. With it: every entry.",
        parameters=query(ConsentQuery),
        responses=responses({200: ConsentPageOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of the ledger, newest first."""
        wanted = ConsentQuery.read(request.query_params.dict())
        rows, last = entries.page(
            caller(request).organization.id,
            entries.LedgerFilter(
                contact_id=wanted.contact_id,
                channel=wanted.channel,
                category=wanted.category,
                history=wanted.history,
                limit=wanted.limit,
                cursor=read_cursor(wanted.cursor),
                test=caller(request).test,
            ),
        )
        return page(request, ConsentPageOutput, {"consent": rows}, cursor_of(last))
