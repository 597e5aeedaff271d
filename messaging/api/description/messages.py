"""The calls for messages, described."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema

from messaging.accept.requests import BulkInput, BulkItem, MessageInput
from messaging.api.description.common import WITH_BODY, Decorator, query, responses
from messaging.api.history_query import HistoryQuery
from messaging.api.outputs import messages as outputs
from rme.core import errors
from rme.core.http.queries import DetailQuery, SendQuery

WITH_KEY = (errors.IdempotencyInProgress, errors.IdempotencyKeyReused)
REFUSALS = (
    errors.NoConsent,
    errors.Suppressed,
    errors.FrequencyCapped,
    errors.NotFound,
    errors.TemplateNotFound,
    errors.Unreachable,
    errors.ProviderError,
)

KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": 255, "pattern": '^(?!""$)[!-~]([ -~]*[!-~])?$'},
    OpenApiParameter.HEADER,
    description="The same key within 24 hours gives the first answer again and sends nothing.",
)

PREFER = OpenApiParameter(
    "Prefer",
    {"type": "string", "examples": ["wait=10"]},
    OpenApiParameter.HEADER,
    description="`wait=N` (RFC 7240): answer when the message has left or failed, after at most N "
    "(30) seconds.",
)


def sends() -> Decorator:
    return extend_schema(
        operation_id="send_message",
        summary="Send a message",
        parameters=[KEY, PREFER, *query(SendQuery)],
        request={"application/json": MessageInput},
        responses=responses(
            {200: outputs.SentOrRehearsed, 202: outputs.SendOutput},
            (*WITH_BODY, *WITH_KEY, *REFUSALS),
        ),
    )


def sends_many() -> Decorator:
    return extend_schema(
        operation_id="send_messages",
        summary="Send up to 500 messages",
        parameters=[KEY],
        request={"application/json": BulkInput},
        responses=responses({202: outputs.BulkOutput}, (*WITH_BODY, *WITH_KEY)),
    )


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_messages",
        summary="Query the history, newest first",
        parameters=query(HistoryQuery),
        responses=responses({200: outputs.HistoryOutput}, ()),
    )


def shows() -> Decorator:
    return extend_schema(
        operation_id="get_message",
        summary="Get a message with its events",
        parameters=query(DetailQuery),
        responses=responses({200: outputs.DetailedOutput}, (errors.NotFound,)),
    )


def cancels() -> Decorator:
    return extend_schema(
        operation_id="cancel_message",
        summary="Cancel a scheduled message",
        responses=responses({200: outputs.SendOutput}, (errors.NotFound, errors.NotCancellable)),
    )


def add_items(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the schema of a bulk's items, which the envelope only refers to (a hook)."""
    schema = BulkItem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = result["components"]["schemas"]
    for name, part in schema.pop("$defs", {}).items():
        schemas.setdefault(name, part)
    schemas["BulkItem"] = schema
    messages = schemas["BulkInput"]["properties"]["messages"]
    messages["items"] = {"$ref": "#/components/schemas/BulkItem"}
    return result
