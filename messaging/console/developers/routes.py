"""The paths of the developers' pages, of which `messaging.console.urls` is made up."""

from django.urls import URLPattern, path

from messaging.console import access
from messaging.console.developers import (
    compose_pages,
    endpoint_pages,
    program_pages,
    request_pages,
    webhook_pages,
)
from rme.tenants.access.roles import Permission

_WEBHOOKS = "<str:organization_id>/webhooks/<int:endpoint_id>/"

ROUTES: list[URLPattern] = [
    path("requests/", access.first("requests", Permission.SEE_SETTINGS), name="first_requests"),
    path("<str:organization_id>/requests/", request_pages.show, name="requests"),
    path("webhooks/", access.first("webhooks", Permission.SEE_SETTINGS), name="first_webhooks"),
    path("<str:organization_id>/webhooks/", webhook_pages.show_first, name="webhooks"),
    path("compose/", access.first("compose", Permission.SEE_SETTINGS), name="first_compose"),
    path("<str:organization_id>/compose/", compose_pages.show, name="compose"),
    path("programs/", access.first("programs", Permission.CHANGE_KEYS), name="first_programs"),
    path("<str:organization_id>/programs/", program_pages.show, name="programs"),
    path(_WEBHOOKS, webhook_pages.show, name="webhook_deliveries"),
    path("<str:organization_id>/webhooks/new/", endpoint_pages.add, name="new_webhook"),
    path(f"{_WEBHOOKS}settings/", endpoint_pages.change, name="webhook_settings"),
    path(f"{_WEBHOOKS}replay/", endpoint_pages.replay, name="webhook_replay"),
    path(f"{_WEBHOOKS}again/", webhook_pages.send_chosen_again, name="webhooks_again"),
    path(f"{_WEBHOOKS}<int:delivery_id>/", webhook_pages.show_one, name="webhook_delivery"),
]
