"""Listing and previewing templates."""

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller, page
from messaging.api.description import templates as description
from messaging.content import catalog, previews
from messaging.content.inputs import RENDER, TemplatesQuery
from messaging.content.previews import TemplatePreview
from messaging.models import TemplateVersion
from rme.core.db.clock import iso
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
        return page(request, {"templates": [_listed(row) for row in versions]}, following)


class RenderView(ApiView):
    """A template as it would be sent."""

    @description.renders()
    def post(self, request: Request, name: str) -> HttpResponse:
        """Render a version."""
        body = request.data
        if may_hold_nul(request._request.body):
            refuse_nul(body)
        wanted = parse(RENDER, body)
        rendered = previews.preview(caller(request).organization, name, wanted)
        return json_response(_previewed(rendered))


def _listed(version: TemplateVersion) -> dict[str, Any]:
    """Return a version as the list shows it."""
    template = version.template
    return {
        "name": template.name,
        "language": template.language,
        "channel": template.channel,
        "category": template.category,
        "status": version.state,
        "version": version.version,
        "variables": version.variables,
        "updatedAt": iso(version.activated_at or version.created_at),
    }


def _previewed(preview: TemplatePreview) -> dict[str, Any]:
    """Return a preview as the API shows it."""
    return {**asdict(preview), "warnings": [each._asdict() for each in preview.warnings]}
