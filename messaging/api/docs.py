"""The OpenAPI document as a page (Swagger UI), from files of this server."""

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
    """The page. Callers enter a token on it, so its policy allows no foreign script.

    The middleware for pages does not apply to the paths of the API: the headers are set here.
    """

    url_name = "openapi"
    renderer_classes = [TemplateHTMLRenderer]
    template_name = "public/docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the page, or its script (`?script`)."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # of drf-spectacular
        nonce = secrets.token_urlsafe(16)
        response.data["nonce"] = nonce
        response["Content-Security-Policy"] = _POLICY.format(nonce=nonce)
        response["X-Frame-Options"] = "DENY"
        response["X-Content-Type-Options"] = "nosniff"
        return response
