"""The calls for templates, described."""

from drf_spectacular.utils import extend_schema

from messaging.api.description.common import WITH_BODY, Decorator, query, responses
from messaging.api.outputs import templates as outputs
from messaging.content.inputs import RenderInput, TemplatesQuery
from rme.core import errors


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_templates",
        summary="List the versions of templates",
        description="By name, language, channel and version. Without `status` drafts and archived "
        "versions are among them.",
        parameters=query(TemplatesQuery),
        responses=responses({200: outputs.TemplatesOutput}, ()),
    )


def renders() -> Decorator:
    return extend_schema(
        operation_id="render_template",
        summary="Preview a template",
        description="Sends nothing and stores nothing.",
        request={"application/json": RenderInput},
        responses=responses(
            {200: outputs.RenderOutput}, (*WITH_BODY, errors.NotFound, errors.TemplateNotFound)
        ),
    )
