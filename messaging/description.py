"""How the calls are described in OpenAPI: bodies, answers, errors, parameters, security."""

from collections.abc import Callable, Sequence
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from messaging import outputs
from messaging.history_query import HistoryQuery
from messaging.schemas import BulkInput, MessageInput
from rme.core import errors

ALWAYS: tuple[type[errors.ApiError], ...] = (
    errors.InvalidPayload,
    errors.Unauthorized,
    errors.MethodNotAllowed,
    errors.InternalError,
    errors.Unavailable,
)
WITH_BODY = (errors.PayloadTooLarge, errors.UnsupportedMediaType)
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
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="The same key within 24 hours gives the first answer again and sends nothing.",
)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe the bearer token, and where it comes from."""

    target_class = "rme.tenants.authentication.BearerAuthentication"
    name = "oauth2"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": "/services/oauth2/token",
                    "scopes": {"api": "The REST API"},
                }
            },
        }


def _responses(
    answers: dict[int, Any], raised: Sequence[type[errors.ApiError]]
) -> dict[int, OpenApiResponse]:
    by_status: dict[int, list[str]] = {}
    for error in (*ALWAYS, *raised):
        by_status.setdefault(error.status, []).append(f"{error.code}: {error.default}")
    told = {
        status: OpenApiResponse(outputs.ErrorOutput, description="; ".join(texts))
        for status, texts in by_status.items()
    }
    return {status: OpenApiResponse(model) for status, model in answers.items()} | told


def _query(model: type[HistoryQuery]) -> list[OpenApiParameter]:
    schema = model.model_json_schema()
    return [
        OpenApiParameter(
            name,
            {k: v for k, v in _plain(part).items() if k != "title"},
            OpenApiParameter.QUERY,
            required=False,
        )
        for name, part in schema["properties"].items()
    ]


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Give the schema of a parameter that is there: one that may be missing is never null."""
    for choice in part.get("anyOf", ()):
        if choice.get("type") != "null":
            return dict(choice)
    return part


Decorator = Callable[[Any], Any]


def sends() -> Decorator:
    return extend_schema(
        operation_id="send_message",
        summary="Send a message",
        parameters=[KEY],
        request={"application/json": MessageInput},
        responses=_responses({202: outputs.SendOutput}, (*WITH_BODY, *WITH_KEY, *REFUSALS)),
    )


def sends_many() -> Decorator:
    return extend_schema(
        operation_id="send_messages",
        summary="Send up to 500 messages",
        parameters=[KEY],
        request={"application/json": BulkInput},
        responses=_responses({202: outputs.BulkOutput}, (*WITH_BODY, *WITH_KEY)),
    )


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_messages",
        summary="Query the history, newest first",
        parameters=_query(HistoryQuery),
        responses=_responses({200: outputs.HistoryOutput}, ()),
    )


def shows() -> Decorator:
    return extend_schema(
        operation_id="get_message",
        summary="Get a message with its events",
        responses=_responses({200: outputs.DetailedOutput}, (errors.NotFound,)),
    )


def cancels() -> Decorator:
    return extend_schema(
        operation_id="cancel_message",
        summary="Cancel a scheduled message",
        responses=_responses({200: outputs.CancelOutput}, (errors.NotFound, errors.NotCancellable)),
    )


def add_items(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the schema of a bulk's items, which the envelope only refers to (a hook)."""
    from messaging.schemas import BulkItem

    schema = BulkItem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = result["components"]["schemas"]
    for name, part in schema.pop("$defs", {}).items():
        schemas.setdefault(name, part)
    schemas["BulkItem"] = schema
    messages = schemas["BulkInput"]["properties"]["messages"]
    messages["items"] = {"$ref": "#/components/schemas/BulkItem"}
    return result
