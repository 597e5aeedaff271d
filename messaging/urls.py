"""Paths of the messaging service, below /rme/v1/."""

from typing import Any

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer

from messaging.views import messages

PUBLIC: dict[str, Any] = {"authentication_classes": [], "permission_classes": []}

urlpatterns = [
    path("openapi.json", SpectacularJSONAPIView.as_view(**PUBLIC), name="openapi"),
    path(
        "docs",
        SpectacularSwaggerSplitView.as_view(
            url_name="openapi", renderer_classes=[TemplateHTMLRenderer], **PUBLIC
        ),
    ),
    path("messages", messages.MessagesView.as_view()),
    path("messages/bulk", messages.BulkView.as_view()),
    path("messages/<str:message_id>", messages.MessageView.as_view()),
]
