"""The paths of the developers' pages, of which `messaging.console.urls` is made up."""

from django.urls import URLPattern, path

from messaging.console import access
from messaging.console.developers import webhook_pages
from rme.tenants.roles import Permission

_WEBHOOKS = "<str:organization_id>/webhooks/<int:endpoint_id>/"

ROUTES: list[URLPattern] = [
    path("webhooks/", access.first("webhooks", Permission.SEE_SETTINGS), name="first_webhooks"),
    path("<str:organization_id>/webhooks/", webhook_pages.show_first, name="webhooks"),
    path(_WEBHOOKS, webhook_pages.show, name="webhook_deliveries"),
    path(f"{_WEBHOOKS}again/", webhook_pages.send_chosen_again, name="webhooks_again"),
    path(f"{_WEBHOOKS}<int:delivery_id>/", webhook_pages.show_one, name="webhook_delivery"),
]
