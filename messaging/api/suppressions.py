"""Suppressions: /suppressions and /suppressions/{id}."""

from collections.abc import Sequence
from dataclasses import replace
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
    TextOrNone,
    Time,
    answer,
    bulk,
    caller,
    entries_of,
    no_content,
    only,
    page,
    read_each,
    request_id,
)
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.consent import suppressions
from messaging.consent.suppression_inputs import (
    LiftQuery,
    SuppressionBody,
    SuppressionsQuery,
    read_address,
    read_entry,
    read_id,
    read_lift,
)
from messaging.consent.suppressions import NewSuppression, SuppressionFilter
from messaging.domain.channels import ALL
from messaging.models import Suppression
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import ENUMERATED, cursor_of, read_cursor

SOURCE = "API"
LIFT_ERRORS = (errors.NotFound, errors.SuppressionProtected)


class SuppressionOutput(Output):
    """An address, or a contact, that is not written to on a channel."""

    id: Identifier
    channel: AnyChannelValue
    address: TextOrNone = Field(description="In its normal form.", examples=["ada@example.com"])
    contact_id: TextOrNone
    reason: Annotated[Suppression.Reason, ENUMERATED]
    note: TextOrNone
    source: str = Field(examples=["API", "ADMIN", "IMPORT", "PROVIDER"])
    created_at: Time = Field(description="ISO 8601, UTC.")
    expires_at: Time | None = Field(description="ISO 8601, UTC; null: never.")


class SuppressionListOutput(Output):
    suppressions: list[SuppressionOutput]
    next_cursor: str | None


class SuppressionResultOutput(Output):
    """One entry of many as it is on the list now, or what is wrong with it."""

    index: int
    entry: SuppressionOutput | None = None
    error: ErrorObject | None = None


class SuppressionBulkOutput(EntriesOutput):
    results: list[SuppressionResultOutput]


class SuppressionAddedOutput(RootModel[SuppressionOutput | SuppressionBulkOutput]):
    """The new entry; of many, the result of each."""


class SuppressionsView(ApiView):
    """The suppressions of an organization."""

    query_parameters = {
        "GET": SuppressionsQuery.parameters(),
        "DELETE": LiftQuery.parameters(),
    }

    @extend_schema(
        operation_id="list_suppressions",
        summary="Query the suppressions, newest first",
        description="Return a page of entries, newest first.",
        parameters=query(SuppressionsQuery),
        responses=responses({200: SuppressionListOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of entries, newest first."""
        organization = caller(request).organization
        filters = SuppressionsQuery.read(request.query_params.dict())
        rows, last = suppressions.find(
            organization.id,
            SuppressionFilter(
                channel=filters.channel,
                address=read_address(filters.address, filters.channel or ALL, organization),
                contact_id=filters.contact_id,
                reason=filters.reason,
                test=caller(request).test,
            ),
            limit=filters.limit,
            before=read_cursor(filters.cursor),
        )
        return page(request, SuppressionListOutput, {"suppressions": rows}, cursor_of(last))

    @extend_schema(
        operation_id="add_suppressions",
        summary="Suppress an address or a contact, or up to 500",
        description="One entry that is there already answers 200, unchanged, save that a stronger "
        "reason (COMPLAINT, STOP, HARD_BOUNCE) replaces a weaker one. A `contactId` that the "
        "organization does not have is NOT_FOUND.",
        request={"application/json": SuppressionBody},
        responses=responses(
            {200: SuppressionOutput, 201: SuppressionAddedOutput}, (*WITH_BODY, errors.NotFound)
        ),
    )
    def post(self, request: Request) -> HttpResponse:
        """Add one entry, or many; a bad one of many fails no other."""
        organization_id = caller(request).organization.id
        items, is_bulk = entries_of(request)
        results = _add(organization_id, _read(request, items))
        if is_bulk:
            return bulk(
                SuppressionBulkOutput, results, lambda entry: entry.row, request_id(request)
            )
        entry = only(results)
        return answer(SuppressionOutput.model_validate(entry.row), 201 if entry.new else 200)

    @extend_schema(
        operation_id="lift_suppression",
        summary="Lift a suppression that the query names",
        parameters=query(LiftQuery),
        responses=responses({204: None}, LIFT_ERRORS),
    )
    def delete(self, request: Request) -> HttpResponse:
        """Lift the entry that the query names."""
        organization = caller(request).organization
        entry = read_lift(request.query_params.dict(), organization)
        suppressions.lift(organization.id, replace(entry, test=caller(request).test))
        return no_content()


class SuppressionView(ApiView):
    """One entry."""

    @extend_schema(
        operation_id="get_suppression",
        summary="Read a suppression",
        responses=responses({200: SuppressionOutput}, (errors.NotFound,)),
    )
    def get(self, request: Request, suppression_id: str) -> HttpResponse:
        """Return an entry."""
        entry = replace(read_id(suppression_id), test=caller(request).test)
        row = suppressions.get(caller(request).organization.id, entry)
        return answer(SuppressionOutput.model_validate(row))

    @extend_schema(
        operation_id="lift_suppression_by_id",
        summary="Lift a suppression",
        responses=responses({204: None}, LIFT_ERRORS),
    )
    def delete(self, request: Request, suppression_id: str) -> HttpResponse:
        """Lift an entry."""
        entry = replace(read_id(suppression_id), test=caller(request).test)
        suppressions.lift(caller(request).organization.id, entry)
        return no_content()


def _read(request: Request, items: Sequence[object]) -> list[NewSuppression | errors.ApiError]:
    """Read entries, and refuse those of contacts that the organization does not have."""
    organization = caller(request).organization
    test = caller(request).test
    read = read_each(
        request,
        items,
        lambda item: replace(read_entry(item, organization, SOURCE), test=test),
    )
    missing_ids = suppressions.missing_contacts(
        organization.id,
        (each.contact_id for each in read if isinstance(each, NewSuppression)),
    )
    return [
        errors.NotFound.at("contactId", "no such contact")
        if isinstance(each, NewSuppression) and each.contact_id in missing_ids
        else each
        for each in read
    ]


def _add(
    organization_id: str, read: Sequence[NewSuppression | errors.ApiError]
) -> list[suppressions.ListEntry | errors.ApiError]:
    """Add the entries among what was read, and return each as it is now, or its error."""
    entries = [each for each in read if isinstance(each, NewSuppression)]
    added = iter(suppressions.add(organization_id, entries) if entries else ())
    return [each if isinstance(each, errors.ApiError) else next(added) for each in read]
