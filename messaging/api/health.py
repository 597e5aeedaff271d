"""Health: GET /health."""

from typing import Annotated, ClassVar, Literal

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request

from messaging.api.common import ChannelValue, Output, Time, answer, caller
from messaging.api.openapi import responses
from messaging.delivery.accounts import CircuitState
from messaging.reports import health
from rme.core.http.api import ApiView
from rme.core.http.fields import ENUMERATED

Condition = Literal["ok", "degraded", "down"]


class CheckOutput(Output):
    status: Condition
    latency_ms: float = Field(description="How long it took to find out.")
    detail: str | None = Field(
        description="What is wrong. With `ok` it tells of a recent restart of PostgreSQL; null "
        "where there is nothing to tell."
    )


class ChecksOutput(Output):
    """What the service depends on, as the answering process sees it."""

    database: CheckOutput
    redis: CheckOutput = Field(description="While it is down, no limit of calls or sends holds.")
    broker: CheckOutput
    workers: CheckOutput
    scheduler: CheckOutput
    archive: CheckOutput | None = Field(
        default=None, description="Left out where there is no archive of old messages."
    )


class QueueOutput(Output):
    """What is ready to be sent on a channel and has not gone."""

    channel: ChannelValue
    ready: int
    oldest_seconds: float


class ProviderOutput(Output):
    """A provider account; its numbers are of the last hour."""

    name: str
    channel: ChannelValue
    status: Literal["ok", "degraded", "down", "paused", "draining"]
    circuit: Annotated[CircuitState, ENUMERATED]
    success_rate: float | None = Field(
        description="The share that was taken, of the attempts that were not refused for the "
        "recipient's or the content's sake."
    )
    p95_latency_ms: int | None
    last_success_at: Time | None = Field(description="ISO 8601, UTC.")
    last_error: str | None


class FindingOutput(Output):
    """What a person must set right. `error`: sends fail or wait because of it."""

    severity: Literal["error", "warning"]
    code: str = Field(examples=["NO_PROVIDER", "SENDER_DOMAIN_UNVERIFIED"])
    message: str


class HealthOutput(Output):
    """`down`: nothing can be accepted; `degraded`: a part of the service does not answer."""

    status: Condition
    version: str
    time: Time = Field(description="ISO 8601, UTC.")
    checks: ChecksOutput
    queues: list[QueueOutput]
    providers: list[ProviderOutput]
    configuration: list[FindingOutput]


class HealthView(ApiView):
    """The health report. Its status is 200, whatever it reports."""

    counted_as: ClassVar[str] = "health"

    @extend_schema(
        operation_id="get_health",
        summary="Get the health of the service, its providers and their configuration",
        description="Return the health of the service and of the caller's providers.",
        responses=responses({200: HealthOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return the health of the service and of the caller's providers."""
        report = health.report(caller(request).organization.id)
        return answer(HealthOutput.model_validate(report))
