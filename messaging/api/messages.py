"""Sending, reading and cancelling messages."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.accept import acceptance, cancel, dry_run, idempotency, waiting
from messaging.accept.requests import BULK, BULK_ITEM, MESSAGE, MessageInput
from messaging.api.common import caller, page, request_id
from messaging.api.description import messages as description
from messaging.api.history_query import HistoryQuery
from messaging.reports import cursors, history, messages
from rme.core import errors
from rme.core.http.api import ApiView, json_response
from rme.core.http.json import may_hold_nul, refuse_nul
from rme.core.http.parsing import parse
from rme.core.http.queries import DetailQuery, SendQuery


def answer(result: acceptance.Result) -> HttpResponse:
    """Answer with what accepting gave; a repeated request says that it is one."""
    replayed = {"Idempotent-Replayed": "true"} if result.replayed else {}
    return json_response(result.body, result.status, {**result.headers, **replayed})


class MessagesView(ApiView):
    """Send a message, and query what was sent."""

    query_parameters = {
        "GET": HistoryQuery.parameters(),
        "POST": SendQuery.parameters(),
    }

    @description.sends()
    def post(self, request: Request) -> HttpResponse:
        """Accept one message; `dryRun=true` only tells what would become of it."""
        body = request.data
        if may_hold_nul(request._request.body):
            refuse_nul(body)
        key = idempotency.key_of(request.headers.get("Idempotency-Key"), body)
        message = parse(MESSAGE, body)
        who, identifier = caller(request), request_id(request)
        if SendQuery.read(request.query_params.dict()).dry_run:
            return json_response(dry_run.rehearse(who, message, request_id=identifier))
        patience = waiting.seconds(request.headers.get("Prefer"))
        then = waiting.until_left(who.organization.id, patience, identifier) if patience else None
        result = acceptance.accept(
            who, acceptance.Submission(message, key), request_id=identifier, then=then
        )
        response = answer(result)
        if patience and not result.replayed:
            response["Preference-Applied"] = f"wait={patience}"
        return response

    @description.lists()
    def get(self, request: Request) -> HttpResponse:
        """Give a page of the history, newest first."""
        wanted = HistoryQuery.read(request.query_params.dict())
        found, following = messages.history(
            caller(request).organization.id,
            history.HistoryFilter(
                contact_id=wanted.contact_id,
                since=wanted.since,
                until=wanted.until,
                status=wanted.status,
                channel=wanted.channel,
                category=wanted.category,
                limit=wanted.limit,
                cursor=cursors.read_cursor(wanted.cursor) if wanted.cursor else None,
            ),
        )
        return page(request, {"messages": found}, following)


class BulkView(ApiView):
    """Send up to 500 messages by one call."""

    @description.sends_many()
    def post(self, request: Request) -> HttpResponse:
        """Accept the messages of a bulk; one bad item fails no other."""
        key = idempotency.key_of(request.headers.get("Idempotency-Key"), request.data)
        envelope = parse(BULK, request.data)
        look = may_hold_nul(request._request.body)
        submissions = [_submission(item, look_for_nul=look) for item in envelope.messages]
        _limit_recipients(submissions)
        return answer(
            acceptance.accept_bulk(
                caller(request), submissions, key=key, request_id=request_id(request)
            )
        )


def _submission(item: Any, *, look_for_nul: bool) -> acceptance.Submission:
    try:
        if look_for_nul:
            refuse_nul(item)
        message = parse(BULK_ITEM, item)
    except errors.InvalidPayload as error:
        return acceptance.Submission(error)
    if message.idempotency_key is None:
        return acceptance.Submission(message)
    request = {name: value for name, value in item.items() if name != "idempotencyKey"}
    return acceptance.Submission(message, idempotency.key_of(message.idempotency_key, request))


def _limit_recipients(submissions: list[acceptance.Submission]) -> None:
    count = sum(len(s.message.to) for s in submissions if isinstance(s.message, MessageInput))
    if count > acceptance.RECIPIENTS_LIMIT:
        raise errors.InvalidPayload.at(
            "messages", f"{count} recipients in all; at most {acceptance.RECIPIENTS_LIMIT}"
        )


class MessageView(ApiView):
    """One message."""

    query_parameters = {"GET": DetailQuery.parameters()}

    @description.shows()
    def get(self, request: Request, message_id: str) -> HttpResponse:
        """Give a message with its events, and its trace if asked for."""
        wanted = DetailQuery.read(request.query_params.dict())
        shown = messages.detail(
            caller(request).organization.id, message_id, with_trace=wanted.include is not None
        )
        return json_response(shown)

    @description.cancels()
    def delete(self, request: Request, message_id: str) -> HttpResponse:
        """Cancel a message that is scheduled."""
        organization_id, identifier = caller(request).organization.id, request_id(request)
        cancel.cancel(organization_id, message_id)
        result = messages.send_result(organization_id, message_id, request_id=identifier)
        return json_response(result)
