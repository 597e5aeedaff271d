"""The description of the API as a page (Swagger UI), of files of our own."""

import secrets
from typing import Any

from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",  # Swagger UI's own drawings
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


class DocsView(SpectacularSwaggerSplitView):
    """Show the page. Whoever logs in on it trusts it with a token: nothing else may run there.

    It stands among the paths of programs, which pass no middleware for pages.
    """

    url_name = "openapi"
    renderer_classes = [TemplateHTMLRenderer]
    template_name = "public/docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the page, or its script (`?script`)."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        nonce = secrets.token_urlsafe(16)
        response.data["nonce"] = nonce
        response["Content-Security-Policy"] = _POLICY.format(nonce=nonce)
        response["X-Frame-Options"] = "DENY"
        response["X-Content-Type-Options"] = "nosniff"
        return response
