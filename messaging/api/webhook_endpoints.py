"""Webhook endpoints: /webhook-endpoints, /webhook-endpoints/{id} and its actions."""

from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request

from messaging.api.common import (
    Identifier,
    Output,
    TextOrNone,
    Time,
    answer,
    body_of,
    caller,
    no_content,
    page,
)
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.webhooks import managed_endpoints, replays
from messaging.webhooks.endpoint_inputs import (
    ENDPOINT,
    ENDPOINT_UPDATE,
    REPLAY,
    EndpointInput,
    EndpointsQuery,
    EndpointUpdateInput,
    ReplayInput,
    read_period,
)
from messaging.webhooks.managed_endpoints import EndpointScope
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import cursor_of, read_cursor
from rme.core.http.parsing import parse
from rme.tenants import audit

ENDPOINT_EXAMPLE = "7"
SECRET_EXAMPLE = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="  # 32 times A


class WebhookEndpointOutput(Output):
    """A URL to which the organization's events are sent."""

    id: Identifier = Field(examples=[ENDPOINT_EXAMPLE])
    url: str = Field(examples=["https://hooks.example.com/rme"])
    description: str = Field(examples=["Production"])
    types: list[str] = Field(examples=[["message.*", "consent.changed"]])
    enabled: bool
    disabled_reason: TextOrNone = Field(examples=["It answered 410: gone."])
    failing_since: Time | None = Field(description="ISO 8601, UTC; null: the last request was ok.")
    last_success_at: Time | None = Field(description="ISO 8601, UTC.")
    former_secret_until: Time | None = Field(
        validation_alias="former_until",
        description="ISO 8601, UTC: until then the replaced secret signs too.",
    )
    created_at: Time = Field(description="ISO 8601, UTC.")


class WebhookEndpointSecretOutput(WebhookEndpointOutput):
    """An endpoint with its secret, which is shown this once."""

    secret: str = Field(description="Signs all requests.", examples=[SECRET_EXAMPLE])


class WebhookEndpointPageOutput(Output):
    webhook_endpoints: list[WebhookEndpointOutput]
    next_cursor: str | None


class WebhookTestOutput(Output):
    webhook_id: Identifier = Field(description="The header webhook-id of the test event.")


class WebhookReplayOutput(Output):
    queued: int = Field(description="How many events are sent again.", examples=[12])
    complete: bool = Field(
        description="false: there were more than are queued at once; replay a later period too."
    )


def _scope(request: Request) -> EndpointScope:
    """Return the endpoints that the caller sees and changes."""
    return EndpointScope(caller(request).organization.id, caller(request).test)


def _actor(request: Request) -> audit.Actor:
    return audit.application(request._request, caller(request).application_id)


class WebhookEndpointsView(ApiView):
    """The webhook endpoints of an organization."""

    query_parameters = {"GET": EndpointsQuery.parameters()}

    @extend_schema(
        operation_id="list_webhook_endpoints",
        summary="List the webhook endpoints, newest first",
        parameters=query(EndpointsQuery),
        responses=responses({200: WebhookEndpointPageOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of endpoints, newest first."""
        wanted = EndpointsQuery.read(request.query_params.dict())
        cursor = read_cursor(wanted.cursor)
        rows, last = managed_endpoints.find(
            _scope(request),
            limit=wanted.limit,
            before=cursor.int if cursor else None,
        )
        following = None if last is None else cursor_of(UUID(int=last))
        return page(request, WebhookEndpointPageOutput, {"webhook_endpoints": rows}, following)

    @extend_schema(
        operation_id="create_webhook_endpoint",
        summary="Create a webhook endpoint",
        description="The answer has the signing secret, which is shown this once. An organization "
        "has at most 20 endpoints.",
        request={"application/json": EndpointInput},
        responses=responses({201: WebhookEndpointSecretOutput}, WITH_BODY),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create an endpoint."""
        given = parse(ENDPOINT, body_of(request))
        caller(request).grants.require_events(given.types)
        row = managed_endpoints.create(_scope(request), given, _actor(request))
        return answer(
            WebhookEndpointSecretOutput.model_validate(row), 201, {"Cache-Control": "no-store"}
        )


class WebhookEndpointView(ApiView):
    """One endpoint."""

    http_method_names = ["get", "patch", "delete", "head"]

    @extend_schema(
        operation_id="get_webhook_endpoint",
        summary="Read a webhook endpoint",
        responses=responses({200: WebhookEndpointOutput}, (errors.NotFound,)),
    )
    def get(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Return an endpoint, without its secret."""
        row = managed_endpoints.get(_scope(request), endpoint_id)
        return answer(WebhookEndpointOutput.model_validate(row))

    @extend_schema(
        operation_id="update_webhook_endpoint",
        summary="Change, enable or disable a webhook endpoint",
        description="A field that is left out stays as it is. A new URL resets the failures.",
        request={"application/json": EndpointUpdateInput},
        responses=responses({200: WebhookEndpointOutput}, (*WITH_BODY, errors.NotFound)),
    )
    def patch(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Change an endpoint."""
        before = managed_endpoints.get(_scope(request), endpoint_id)  # strangers learn no more
        given = parse(ENDPOINT_UPDATE, body_of(request))
        has_types = "types" in given.model_fields_set
        caller(request).grants.require_events(given.types if has_types else before.types)
        row = managed_endpoints.update(_scope(request), endpoint_id, given, _actor(request))
        return answer(WebhookEndpointOutput.model_validate(row))

    @extend_schema(
        operation_id="delete_webhook_endpoint",
        summary="Delete a webhook endpoint, with its queue",
        responses=responses({204: None}, (errors.NotFound,)),
    )
    def delete(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Delete an endpoint."""
        managed_endpoints.delete(_scope(request), endpoint_id, _actor(request))
        return no_content()


class RotateSecretView(ApiView):
    """An endpoint's secret."""

    http_method_names = ["post"]

    @extend_schema(
        operation_id="rotate_webhook_secret",
        summary="Replace the signing secret of a webhook endpoint",
        description="The new secret signs at once and is shown this once. The former one signs "
        "too for 24 hours.",
        request=None,
        responses=responses({200: WebhookEndpointSecretOutput}, (errors.NotFound,)),
    )
    def post(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Replace the secret."""
        row = managed_endpoints.rotate_secret(_scope(request), endpoint_id, _actor(request))
        return answer(
            WebhookEndpointSecretOutput.model_validate(row), 200, {"Cache-Control": "no-store"}
        )


class TestEventView(ApiView):
    """Test events of an endpoint."""

    http_method_names = ["post"]

    @extend_schema(
        operation_id="test_webhook_endpoint",
        summary="Send a test event to a webhook endpoint",
        request=None,
        responses=responses({202: WebhookTestOutput}, (errors.NotFound,)),
    )
    def post(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Queue a test event."""
        webhook_id = managed_endpoints.test(_scope(request), endpoint_id, _actor(request))
        return answer(WebhookTestOutput.model_validate({"webhook_id": webhook_id}), 202)


class ReplayView(ApiView):
    """Replays to an endpoint."""

    http_method_names = ["post"]

    @extend_schema(
        operation_id="replay_webhooks",
        summary="Send events to a webhook endpoint again",
        description="Without a period: the deliveries that were given up in the last 30 days. "
        "With one: its events, also those that were delivered. They keep their `webhook-id`.",
        request={"application/json": ReplayInput},
        responses=responses({202: WebhookReplayOutput}, (*WITH_BODY, errors.NotFound)),
    )
    def post(self, request: Request, endpoint_id: str) -> HttpResponse:
        """Queue events again."""
        managed_endpoints.get(_scope(request), endpoint_id)  # a stranger learns nothing else
        period = read_period(parse(REPLAY, body_of(request)))
        count = managed_endpoints.replay(_scope(request), endpoint_id, period, _actor(request))
        complete = period is None or count < replays.REPLAY_LIMIT
        return answer(WebhookReplayOutput(queued=count, complete=complete), 202)
