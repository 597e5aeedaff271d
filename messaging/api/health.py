"""How the service is."""

from typing import ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller
from messaging.api.description import health as description
from messaging.reports import health
from rme.core.http.api import ApiView, json_response


class HealthView(ApiView):
    """The health report, which answers 200 whatever it has to tell."""

    counted_as: ClassVar[str] = "health"

    @description.shows()
    def get(self, request: Request) -> HttpResponse:
        """Give the health of the service and of the caller's providers."""
        return json_response(health.report(caller(request).organization.id))
