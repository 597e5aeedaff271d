"""Templates: GET /templates and POST /templates/{name}/render."""

from typing import Annotated, Any, Literal

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request

from messaging.api.common import (
    ChannelValue,
    DetailOutput,
    Output,
    Time,
    answer,
    body_of,
    caller,
    page,
)
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.content import catalog, previews
from messaging.content.inputs import RENDER, RenderInput, TemplatesQuery
from messaging.models import TemplateVersion
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import ENUMERATED
from rme.core.http.parsing import parse
from rme.tenants.oauth.permissions import ProgramPermission


class VersionOutput(Output):
    """One version of a template."""

    name: str
    language: str = Field(examples=["en_GB"])
    channel: ChannelValue
    category: str
    status: Annotated[TemplateVersion.State, ENUMERATED]
    version: int
    variables: dict[str, Any] = Field(description="JSON Schema of what the texts need.")
    updated_at: Time = Field(description="When it became active, else when it was made.")


class TemplatesOutput(Output):
    templates: list[VersionOutput]
    next_cursor: str | None


class SmsOutput(Output):
    """What an SMS takes; `units` are septets (GSM-7) or UTF-16 units (UCS-2)."""

    encoding: Literal["GSM-7", "UCS-2"]
    characters: int
    units: int
    segments: int


class RenderOutput(Output):
    """A version as it would be sent; what its channel does not have is null."""

    name: str
    language: str
    channel: ChannelValue
    version: int
    subject: str | None
    text: str | None
    html: str | None
    title: str | None
    body: str | None
    data: dict[str, str] | None
    sms: SmsOutput | None
    missing: list[str] = Field(description="Variables without a value, which left a gap.")
    warnings: list[DetailOutput]


class TemplatesView(ApiView):
    """The templates of the organization."""

    query_parameters = {"GET": TemplatesQuery.parameters()}

    @extend_schema(
        operation_id="list_templates",
        summary="List the versions of templates",
        description="By name, language, channel and version. Without `status` drafts and archived "
        "versions are among them.",
        parameters=query(TemplatesQuery),
        responses=responses({200: TemplatesOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of versions."""
        wanted = TemplatesQuery.read(request.query_params.dict())
        versions, following = catalog.page(caller(request).organization.id, wanted)
        shown = [_shown(version) for version in versions]
        return page(request, TemplatesOutput, {"templates": shown}, following)


class RenderView(ApiView):
    """A template as it would be sent."""

    @extend_schema(
        operation_id="render_template",
        summary="Preview a template",
        description="Sends nothing and stores nothing.",
        request={"application/json": RenderInput},
        responses=responses(
            {200: RenderOutput}, (*WITH_BODY, errors.NotFound, errors.TemplateNotFound)
        ),
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        """Render a version."""
        request_input, who = parse(RENDER, body_of(request)), caller(request)
        if request_input.contact_id or (request_input.context and request_input.context.record_id):
            who.grants.require(ProgramPermission.READ_PEOPLE)
        preview = previews.preview(who.organization, name, request_input)
        return answer(RenderOutput.model_validate(preview))


def _shown(version: TemplateVersion) -> VersionOutput:
    template = version.template
    return VersionOutput(
        name=template.name,
        language=template.language,
        channel=template.channel,
        category=template.category,
        status=version.state,
        version=version.version,
        variables=version.variables,
        updated_at=version.activated_at or version.created_at,
    )
