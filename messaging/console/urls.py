"""Paths of the console, below /admin/console/."""

from django.urls import URLPattern, URLResolver, include, path

from messaging.console import access, audit_page, new_organization
from messaging.console.actions import action_pages
from messaging.console.compliance import consent_list, ledger_page, request_list, request_page
from messaging.console.developers import (
    compose_pages,
    endpoint_pages,
    program_pages,
    request_pages,
    webhook_pages,
)
from messaging.console.filters import saved_filters
from messaging.console.messages import message_list, message_page, message_peek
from messaging.console.people import (
    contact_list,
    contact_pages,
    entries_in_test,
    person_page,
    person_peek,
    suppression_pages,
)
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
    translations,
)
from messaging.console.team import member_pages, team_page
from rme.tenants.access.roles import Permission

app_name = "console"

_FIRST = {
    "messages": Permission.SEE_MESSAGES,
    "templates": Permission.SEE_TEMPLATES,
    "providers": Permission.SEE_SETTINGS,
    "domains": Permission.SEE_SETTINGS,
    "audit": Permission.SEE_AUDIT,
    "send": Permission.OPERATE,
    "contacts": Permission.SEE_PEOPLE,
    "suppressions": Permission.SEE_PEOPLE,
    "consent": Permission.SEE_PEOPLE,
    "privacy": Permission.SEE_PEOPLE,
    "requests": Permission.SEE_SETTINGS,
    "webhooks": Permission.SEE_SETTINGS,
    "compose": Permission.SEE_SETTINGS,
    "programs": Permission.CHANGE_KEYS,
    "team": Permission.GRANT_ROLES,
}
"""Pages that have an address without an organization, for the latest one, and what they need."""

_MESSAGES = [
    path("", message_list.show, name="messages"),
    path("export/", message_list.export, name="export"),
    path("<uuid:message_id>/", message_page.show, name="message"),
    path("<uuid:message_id>/peek/", message_peek.show, name="message_peek"),
    path("<uuid:message_id>/record/", message_page.record, name="message_record"),
    path("<uuid:message_id>/<int:position>.html", message_page.html, name="html"),
]
_TEMPLATES = [
    path("", template_list.show, name="templates"),
    path("-/contacts/", live.contacts, name="sample_contacts"),
    path("-/new/", template_list.new, name="template_new"),
    path("-/import/", template_files.show_import, name="template_import"),
    path("-/export/", template_files.export, name="template_export"),
    path("<str:name>/", template_page.show, name="template"),
    path("<str:name>/peek/", template_list.show_peek, name="template_peek"),
    path("<str:name>/compare/", comparison.show, name="template_compare"),
    path("<str:name>/schema/", schema_page.show, name="template_schema"),
    path("<str:name>/publish/", template_page.publish, name="template_publish"),
    path("<str:name>/preview/", live.preview, name="template_preview"),
    path("<str:name>/frame/", live.frame, name="template_frame"),
    path("<str:name>/draft/", live.draft, name="template_draft"),
    path("<str:name>/xliff/", translations.export, name="template_xliff"),
    path("<str:name>/translation/", translations.take_in, name="template_translation"),
]
_PROVIDERS = [
    path("", lanes.show, name="providers"),
    path("callbacks/", callback_page.show, name="callbacks"),
    path("callbacks/<uuid:callback_id>/", callback_page.show_one, name="callback"),
    path("route/", route_page.show, name="route"),
    path("new/<str:provider_kind>/", account_settings.add, name="new_provider"),
    path("<int:account_id>/", account_page.show, name="provider"),
    path("<int:account_id>/settings/", account_settings.change, name="provider_settings"),
]
_CONTACTS = [
    path("", contact_list.show, name="contacts"),
    path("new/", contact_pages.edit, name="contact_new"),
    path("delete/", contact_pages.delete, name="contacts_delete"),
    path("merge/", contact_pages.merge, name="contacts_merge"),
    path("<uuid:contact_id>/edit/", contact_pages.edit, name="contact_edit"),
]
_SUPPRESSIONS = [
    path("", suppression_pages.show, name="suppressions"),
    path("new/", suppression_pages.new, name="suppression_new"),
    path("<uuid:suppression_id>/", suppression_pages.show_one, name="suppression"),
    path("<uuid:suppression_id>/lift/", suppression_pages.lift, name="lift"),
]
_CONSENT = [
    path("", consent_list.show, name="consent"),
    path("<uuid:entry_id>/", consent_list.show_one, name="consent_entry"),
    path("ledger/", ledger_page.show, name="ledger"),
    path("ledger/export/", ledger_page.export, name="ledger_export"),
]
_PRIVACY = [
    path("", request_list.show, name="privacy"),
    path("new/", request_list.new, name="privacy_new"),
    path("<uuid:request_id>/", request_page.show, name="privacy_request"),
    path("<uuid:request_id>/file/", request_page.download, name="privacy_file"),
]
_WEBHOOKS = [
    path("", webhook_pages.show_first, name="webhooks"),
    path("new/", endpoint_pages.add, name="new_webhook"),
    path("<int:endpoint_id>/", webhook_pages.show, name="webhook_deliveries"),
    path("<int:endpoint_id>/settings/", endpoint_pages.change, name="webhook_settings"),
    path("<int:endpoint_id>/replay/", endpoint_pages.replay, name="webhook_replay"),
    path("<int:endpoint_id>/again/", webhook_pages.send_chosen_again, name="webhooks_again"),
    path("<int:endpoint_id>/<int:delivery_id>/", webhook_pages.show_one, name="webhook_delivery"),
]
_TEAM = [
    path("", team_page.show, name="team"),
    path("<int:membership_id>/", member_pages.change_role, name="member_role"),
    path("<int:membership_id>/remove/", member_pages.remove, name="member_remove"),
    path("invitations/<uuid:invitation_id>/", member_pages.withdraw, name="withdraw_invitation"),
]
_ORGANIZATION: list[URLPattern | URLResolver] = [
    path("messages/", include(_MESSAGES)),
    path("filters/", saved_filters.show, name="filters"),
    path("filters/<uuid:filter_id>/", saved_filters.change, name="filter"),
    path("actions/", action_pages.history, name="actions"),
    path("actions/<uuid:action_id>/", action_pages.progress, name="action"),
    path("actions/<str:kind>/new/", action_pages.choose, name="choose"),
    path("pause/", action_pages.pause, name="pause"),
    path("send/", send_page.show, name="send"),
    path("send/frame/", send_page.frame, name="send_frame"),
    path("templates/", include(_TEMPLATES)),
    path("partials/", partial_pages.show_list, name="partials"),
    path("partials/<str:name>/", partial_pages.show, name="partial"),
    path("partials/<str:name>/publish/", partial_pages.publish, name="partial_publish"),
    path("providers/", include(_PROVIDERS)),
    path("domains/", domain_page.show, name="domains"),
    path("domains/new/", domain_page.add, name="new_domain"),
    path("domains/<int:domain_id>/", domain_page.show_one, name="domain"),
    path("contacts/", include(_CONTACTS)),
    path("people/<path:contact_id>/peek/", person_peek.show, name="person_peek"),
    path("people/<path:contact_id>/", person_page.show, name="person"),
    path("suppressions/", include(_SUPPRESSIONS)),
    path("test-entries/", entries_in_test.show, name="test_entries"),
    path("consent/", include(_CONSENT)),
    path("privacy/", include(_PRIVACY)),
    path("requests/", request_pages.show, name="requests"),
    path("requests/<uuid:logged_id>/", request_pages.show_one, name="request"),
    path("webhooks/", include(_WEBHOOKS)),
    path("compose/", compose_pages.show, name="compose"),
    path("programs/", program_pages.show, name="programs"),
    path("team/", include(_TEAM)),
    path("audit/", audit_page.show, name="audit"),
    path("audit/export/", audit_page.export, name="audit_export"),
    path("audit/<uuid:audited_id>/", audit_page.show_one, name="audit_entry"),
]
urlpatterns = [
    *(
        path(f"{page}/", access.first(page, permission), name=f"first_{page}")
        for page, permission in _FIRST.items()
    ),
    path("-/new/", new_organization.page, name="new_organization"),
    path("-/audit/", audit_page.of_deployment, name="deployment_audit"),
    path("-/audit/<uuid:audited_id>/", audit_page.one_of_deployment, name="deployment_audit_entry"),
    path("-/audit/export/", audit_page.export_of_deployment, name="deployment_audit_export"),
    path("<str:organization_id>/", include(_ORGANIZATION)),
]
