"""Paths of the messaging service, below /rme/v1/."""

from typing import Any

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from messaging.api import (
    consent,
    devices,
    docs,
    health,
    messages,
    suppressions,
    templates,
    webhook_endpoints,
)

PUBLIC: dict[str, Any] = {
    "authentication_classes": [],
    "permission_classes": [],
    "http_method_names": ["get", "head"],
}
_ENDPOINT = "webhook-endpoints/<str:endpoint_id>"

SETS = {messages.SINGLE_SENDS.route: messages.SINGLE_SENDS}
"""The calls whose requests the web server may answer together, and what answers them."""

urlpatterns = [
    # first, since Django tries the paths in order
    path("messages", messages.MessagesView.as_view()),
    path("messages/bulk", messages.BulkView.as_view()),
    path("messages/<str:message_id>", messages.MessageView.as_view()),
    path("openapi.json", SpectacularJSONAPIView.as_view(**PUBLIC), name="openapi"),
    path("docs", docs.DocsView.as_view(**PUBLIC)),
    path("consent", consent.ConsentView.as_view()),
    path("devices", devices.DevicesView.as_view()),
    path("devices/vapid-key", devices.VapidKeyView.as_view()),
    path("devices/<str:device_id>", devices.DeviceView.as_view()),
    path("devices/<str:device_id>/replace", devices.ReplaceView.as_view()),
    path("health", health.HealthView.as_view()),
    path("templates", templates.TemplatesView.as_view()),
    path("templates/<str:name>/render", templates.RenderView.as_view()),
    path("suppressions", suppressions.SuppressionsView.as_view()),
    path("suppressions/<str:suppression_id>", suppressions.SuppressionView.as_view()),
    path("webhook-endpoints", webhook_endpoints.WebhookEndpointsView.as_view()),
    path(_ENDPOINT, webhook_endpoints.WebhookEndpointView.as_view()),
    path(f"{_ENDPOINT}/rotate-secret", webhook_endpoints.RotateSecretView.as_view()),
    path(f"{_ENDPOINT}/test", webhook_endpoints.TestEventView.as_view()),
    path(f"{_ENDPOINT}/replay", webhook_endpoints.ReplayView.as_view()),
]
