"""Paths of the console, below /admin/console/."""

from django.urls import path

from messaging.console import access, audit_page, search
from messaging.console.actions import action_pages
from messaging.console.compliance.routes import ROUTES as COMPLIANCE
from messaging.console.developers.routes import ROUTES as DEVELOPERS
from messaging.console.filters import saved_filters
from messaging.console.filters.message_filter import HELD
from messaging.console.messages import message_list, message_page
from messaging.console.people.routes import ROUTES as PEOPLE
from messaging.console.routing import (
    account_page,
    account_settings,
    callback_page,
    domain_page,
    lanes,
    route_page,
)
from messaging.console.sending import send_page
from messaging.console.studio import (
    comparison,
    live,
    partial_pages,
    schema_page,
    template_files,
    template_list,
    template_page,
)
from rme.tenants.access.roles import Permission

app_name = "console"
urlpatterns = [
    path("messages/", access.first("messages"), name="first_messages"),
    path("review/", access.first("messages", query=f"status={HELD}"), name="first_review"),
    path("outbox/", access.first("messages", query="provider=simulator"), name="first_outbox"),
    path("templates/", access.first("templates", Permission.SEE_TEMPLATES), name="first_templates"),
    path("providers/", access.first("providers", Permission.SEE_SETTINGS), name="first_providers"),
    path("domains/", access.first("domains", Permission.SEE_SETTINGS), name="first_domains"),
    path("audit/", access.first("audit", Permission.SEE_AUDIT), name="first_audit"),
    path("send/", access.first("send", Permission.OPERATE), name="first_send"),
    path("<str:organization_id>/send/", send_page.show, name="send"),
    path("<str:organization_id>/send/frame/", send_page.frame, name="send_frame"),
    path("-/audit/", audit_page.of_deployment, name="deployment_audit"),
    path("-/audit/export/", audit_page.export_of_deployment, name="deployment_audit_export"),
    path("<str:organization_id>/audit/", audit_page.show, name="audit"),
    path("<str:organization_id>/audit/export/", audit_page.export, name="audit_export"),
    path("search/", search.show, name="search"),
    path("<str:organization_id>/messages/", message_list.show, name="messages"),
    path("<str:organization_id>/messages/export/", message_list.export, name="export"),
    path("<str:organization_id>/filters/", saved_filters.show, name="filters"),
    path("<str:organization_id>/filters/<uuid:filter_id>/", saved_filters.change, name="filter"),
    path("<str:organization_id>/messages/<uuid:message_id>/", message_page.show, name="message"),
    path(
        "<str:organization_id>/messages/<uuid:message_id>/record/",
        message_page.record,
        name="message_record",
    ),
    path(
        "<str:organization_id>/messages/<uuid:message_id>/<int:position>.html",
        message_page.html,
        name="html",
    ),
    path("<str:organization_id>/actions/", action_pages.history, name="actions"),
    path("<str:organization_id>/actions/<uuid:action_id>/", action_pages.progress, name="action"),
    path("<str:organization_id>/actions/<str:kind>/new/", action_pages.choose, name="choose"),
    path("<str:organization_id>/templates/", template_list.show, name="templates"),
    path("<str:organization_id>/templates/-/contacts/", live.contacts, name="sample_contacts"),
    path(
        "<str:organization_id>/templates/-/import/",
        template_files.show_import,
        name="template_import",
    ),
    path(
        "<str:organization_id>/templates/-/export/", template_files.export, name="template_export"
    ),
    path("<str:organization_id>/templates/<str:name>/", template_page.show, name="template"),
    path(
        "<str:organization_id>/templates/<str:name>/compare/",
        comparison.show,
        name="template_compare",
    ),
    path(
        "<str:organization_id>/templates/<str:name>/schema/",
        schema_page.show,
        name="template_schema",
    ),
    path(
        "<str:organization_id>/templates/<str:name>/publish/",
        template_page.publish,
        name="template_publish",
    ),
    path(
        "<str:organization_id>/templates/<str:name>/preview/", live.preview, name="template_preview"
    ),
    path("<str:organization_id>/templates/<str:name>/frame/", live.frame, name="template_frame"),
    path("<str:organization_id>/templates/<str:name>/draft/", live.draft, name="template_draft"),
    path("<str:organization_id>/partials/", partial_pages.show_list, name="partials"),
    path("<str:organization_id>/partials/<str:name>/", partial_pages.show, name="partial"),
    path(
        "<str:organization_id>/partials/<str:name>/publish/",
        partial_pages.publish,
        name="partial_publish",
    ),
    path("<str:organization_id>/providers/", lanes.show, name="providers"),
    path("<str:organization_id>/domains/", domain_page.show, name="domains"),
    path("<str:organization_id>/domains/new/", domain_page.add, name="new_domain"),
    path("<str:organization_id>/domains/<int:domain_id>/", domain_page.show_one, name="domain"),
    path("<str:organization_id>/providers/callbacks/", callback_page.show, name="callbacks"),
    path("<str:organization_id>/providers/route/", route_page.show, name="route"),
    path(
        "<str:organization_id>/providers/new/<str:provider_kind>/",
        account_settings.add,
        name="new_provider",
    ),
    path("<str:organization_id>/providers/<int:account_id>/", account_page.show, name="provider"),
    path(
        "<str:organization_id>/providers/<int:account_id>/settings/",
        account_settings.change,
        name="provider_settings",
    ),
    path("<str:organization_id>/pause/", action_pages.pause, name="pause"),
    *PEOPLE,
    *COMPLIANCE,
    *DEVELOPERS,
]
