"""Paths of the messaging service, below /rme/v1/."""

from typing import Any

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer

from messaging import views

PUBLIC: dict[str, Any] = {"authentication_classes": [], "permission_classes": []}

urlpatterns = [
    path("openapi.json", SpectacularJSONAPIView.as_view(**PUBLIC), name="openapi"),
    path(
        "docs",
        SpectacularSwaggerSplitView.as_view(
            url_name="openapi", renderer_classes=[TemplateHTMLRenderer], **PUBLIC
        ),
    ),
    path("messages", views.MessagesView.as_view()),
    path("messages/bulk", views.BulkView.as_view()),
    path("messages/<str:message_id>", views.MessageView.as_view()),
]
