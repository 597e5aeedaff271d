"""Listing and previewing templates."""

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller, page
from messaging.api.description import templates as description
from messaging.content import catalog, previews
from messaging.content.inputs import RENDER, TemplatesQuery
from rme.core.http.api import ApiView, json_response
from rme.core.http.json import may_hold_nul, refuse_nul
from rme.core.http.parsing import parse


class TemplatesView(ApiView):
    """The templates of the organization."""

    query_parameters = {"GET": TemplatesQuery.parameters()}

    @description.lists()
    def get(self, request: Request) -> HttpResponse:
        """Give a page of versions."""
        wanted = TemplatesQuery.read(request.query_params.dict())
        versions, following = catalog.page(caller(request).organization.id, wanted)
        return page(request, {"templates": versions}, following)


class RenderView(ApiView):
    """A template as it would be sent."""

    @description.renders()
    def post(self, request: Request, name: str) -> HttpResponse:
        """Render a version."""
        body = request.data
        if may_hold_nul(request._request.body):
            refuse_nul(body)
        wanted = parse(RENDER, body)
        return json_response(previews.preview(caller(request).organization, name, wanted))
