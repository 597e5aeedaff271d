"""The parts of the OpenAPI document that all calls share: errors, parameters, security, hooks."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from pydantic import BaseModel

from messaging.api.common import ErrorOutput
from rme.core import errors

ANY_CALL: tuple[type[errors.ApiError], ...] = (
    errors.InvalidPayload,
    errors.Unauthorized,
    errors.Forbidden,
    errors.MethodNotAllowed,
    errors.RateLimited,
    errors.InternalError,
    errors.Unavailable,
)
WITH_BODY = (errors.PayloadTooLarge, errors.UnsupportedMediaType)


class BearerScheme(OpenApiAuthenticationExtension):
    """Describe the bearer token, and the endpoint that issues it."""

    target_class = "rme.tenants.oauth.authentication.BearerAuthentication"
    name = "oauth2"

    def get_security_definition(self, auto_schema: object) -> dict[str, object]:
        return {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": f"{settings.BASE_URL}/services/oauth2/token",
                    "scopes": {"api": "The REST API"},
                }
            },
        }


def responses(
    answers: Mapping[int, type[BaseModel] | None], raised: Sequence[type[errors.ApiError]]
) -> dict[int, OpenApiResponse]:
    """Describe a call's answers by status, and the errors that it raises besides ANY_CALL."""
    by_status: dict[int, list[str]] = {}
    for error in (*ANY_CALL, *raised):
        by_status.setdefault(error.status, []).append(f"{error.code}: {error.default}")
    refusals = {
        status: OpenApiResponse(ErrorOutput, description="; ".join(texts))
        for status, texts in by_status.items()
    }
    return {status: OpenApiResponse(model) for status, model in answers.items()} | refusals


HEADERS = {
    "RateLimit": {
        "description": "How many calls remain of each limit, and the seconds until it is whole.",
        "required": True,
        "schema": {"type": "string", "examples": ['"second";r=99;t=1, "day";r=999999;t=1']},
    },
    "RateLimit-Policy": {
        "description": "The limits of calls (draft-ietf-httpapi-ratelimit-headers).",
        "required": True,
        "schema": {
            "type": "string",
            "examples": ['"second";q=100;w=1, "day";q=1000000;w=86400'],
        },
    },
    "Retry-After": {
        "description": "Seconds to wait.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
}
WITH_RETRY_AFTER = ("429", "503")
WITHOUT_RATE_LIMIT = ("401", "413", "500", "503")
"""Answers that may come before the call was counted."""


def add_headers(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, object]:
    """Describe the headers that all calls with a token share (a hook)."""
    result["components"]["headers"] = HEADERS
    for operations in result["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                names = ["Retry-After"] if status in WITH_RETRY_AFTER else []
                names += (
                    ["RateLimit", "RateLimit-Policy"] if status not in WITHOUT_RATE_LIMIT else []
                )
                shown = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
                answer["headers"] = {**answer.get("headers", {}), **shown}
    return result


def require_bodies(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, object]:
    """Describe a body as required unless all its fields may be left out (a hook)."""
    for operations in result["paths"].values():
        for operation in operations.values():
            if body := operation.get("requestBody"):
                name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                schema = result["components"]["schemas"][name]
                body["required"] = "required" in schema or "properties" not in schema
    return result


def leave_out_defaults(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, object]:
    """Describe no default that a generated client would send by itself (a hook).

    A field that an update leaves out stays as it is, so a default would change it. And a null that
    is a default makes openapi-typescript require the field.
    """
    updates = [
        operations["patch"] for operations in result["paths"].values() if "patch" in operations
    ]
    schemas = result["components"]["schemas"]
    for operation in updates:
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for field in schemas[name.rpartition("/")[2]]["properties"].values():
            field.pop("default", None)
    pending: list[object] = [result]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "default" in node and node["default"] is None:
                del node["default"]
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return result


def query(model: type[BaseModel]) -> list[OpenApiParameter]:
    """Describe the query parameters of a call by the model that reads them."""
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


def _plain(part: dict[str, Any]) -> dict[str, object]:
    """Return the schema of a parameter without null: a parameter is left out instead."""
    choices = part.get("anyOf", [])
    if {"type": "null"} not in choices:
        return part
    return next(dict(choice) for choice in choices if choice != {"type": "null"})
