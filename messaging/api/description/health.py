"""The health call, described."""

from drf_spectacular.utils import extend_schema

from messaging.api.description.common import Decorator, responses
from messaging.api.outputs import health as outputs


def shows() -> Decorator:
    return extend_schema(
        operation_id="get_health",
        summary="Get the health of the service, its providers and their configuration",
        responses=responses({200: outputs.HealthOutput}, ()),
    )
