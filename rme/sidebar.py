"""The pages in the admin's sidebar."""

from collections.abc import Collection
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse_lazy
from django.utils.module_loading import import_string


def _page(title: str, icon: str, model: str) -> dict[str, Any]:
    """Return an entry of the sidebar; users who may not open the page do not see it."""

    def may_open(request: Any) -> bool:
        page = admin.site.get_model_admin(apps.get_model(model.replace("_", ".")))
        return page.has_view_permission(request)

    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{model}_changelist"),
        "permission": may_open,
    }


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of entries that a person may open.

    The theme would ask for each permission by a class that it makes for it, on every page. Without
    one an entry is shown.
    """
    groups = [
        {
            **group,
            "items": [_entry(each, request) for each in group["items"] if _may(each, request)],
        }
        for group in NAVIGATION
    ]
    return [group for group in groups if group["items"]]


def _may(entry: dict[str, Any], request: HttpRequest) -> bool:
    permission = entry.get("permission")
    if permission is None:
        return True
    check = import_string(permission) if isinstance(permission, str) else permission
    return bool(check(request))


def _entry(entry: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
    """Return an entry as the theme shows it: with its address, and whether it is the current one.

    The theme finds out by the address which page of a model is the current one.
    """
    link = {name: entry[name] for name in ("title", "icon")} | {"link": str(entry["link"])}
    if "active" in entry:
        link["active"] = entry["active"](request)
    return link


def _console(
    title: str,
    icon: str,
    name: str,
    pages: Collection[str],
    permission: str = "may_enter",
    *,
    held: bool = False,
) -> dict[str, Any]:
    """Return an entry that leads to a page of the console, of the latest organization.

    `pages` are the names of the pages on which it is the current one; `held`: filtered by what is
    in manual review.
    """

    def is_current(request: Any) -> bool:
        match = request.resolver_match
        if match is None or match.app_name != "console" or match.url_name not in pages:
            return False
        return bool(request.GET.get("status") == "HELD") is held

    return {
        "active": is_current,
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"console:first_{name}"),
        "permission": f"messaging.console.access.{permission}",
    }


NAVIGATION: list[dict[str, Any]] = [
    {
        "title": "Messages",
        "items": [
            _console("Messages", "mail", "messages", ("messages", "message", "message_record")),
            _console("Send a message", "send", "send", ("send",), "may_operate"),
            _console("Manual review", "help", "review", ("messages",), held=True),
            _console("Simulator outbox", "outbox", "outbox", ()),
            _console(
                "Templates",
                "description",
                "templates",
                (
                    *("templates", "template", "template_compare", "template_import"),
                    *("template_schema", "partials", "partial"),
                ),
                "may_see_templates",
            ),
        ],
    },
    {
        "title": "People",
        "items": [
            _console(
                "Contacts",
                "person",
                "contacts",
                (
                    *("contacts", "contact_new", "contact_edit", "contacts_delete"),
                    *("contacts_merge", "person"),
                ),
                permission="may_see_people",
            ),
            _console(
                "Consent",
                "handshake",
                "consent",
                ("consent", "consent_entry", "ledger"),
                permission="may_see_people",
            ),
            _console(
                "Privacy requests",
                "privacy_tip",
                "privacy",
                ("privacy", "privacy_new", "privacy_request"),
                permission="may_see_people",
            ),
            _console(
                "Suppressions",
                "block",
                "suppressions",
                ("suppressions", "suppression_new", "suppression", "lift", "test_entries"),
                permission="may_see_people",
            ),
            _page("Devices", "smartphone", "push_device"),
        ],
    },
    {
        "title": "Sending",
        "items": [
            _console(
                "Providers and routing",
                "cell_tower",
                "providers",
                (
                    "providers",
                    "provider",
                    "provider_settings",
                    "new_provider",
                    "route",
                    "callbacks",
                ),
                "may_see_settings",
            ),
            _page("Categories", "category", "messaging_category"),
            _page("Sending rules", "speed", "messaging_sendingrules"),
            _page("Pauses", "pause_circle", "messaging_pause"),
            _console(
                "Sender domains",
                "alternate_email",
                "domains",
                ("domains", "domain", "new_domain"),
                "may_see_settings",
            ),
        ],
    },
    {
        "title": "Platform",
        "collapsible": True,
        "items": [
            _page("Connection", "hub", "crm_platform"),
            _page("Accounts", "business", "crm_account"),
            _page("Cases", "support", "crm_case"),
            _page("Events", "event", "crm_event"),
            _page("Registrations", "how_to_reg", "crm_eventregistration"),
            _page("Speakers", "mic", "crm_speaker"),
            _page("Exhibitors", "storefront", "crm_exhibitor"),
        ],
    },
    {
        "title": "Developers",
        "items": [
            _console(
                "Applications and keys", "terminal", "programs", ("programs",), "may_change_keys"
            ),
            _console("API requests", "lists", "requests", ("requests",), "may_see_settings"),
            _console(
                "Webhooks",
                "webhook",
                "webhooks",
                (
                    *("webhooks", "webhook_deliveries", "webhook_delivery", "webhooks_again"),
                    *("new_webhook", "webhook_settings", "webhook_replay"),
                ),
                "may_see_settings",
            ),
            _console("Compose a request", "code", "compose", ("compose",), "may_see_settings"),
            {"title": "API description", "icon": "menu_book", "link": "/rme/v1/docs"},
        ],
    },
    {
        "title": "Access",
        "items": [
            _page("Organizations", "domain", "tenants_organization"),
            _page("Applications", "apps", "tenants_application"),
            _page("API keys", "key", "tenants_apikey"),
            _page("Bot settings", "smart_toy", "bot_botsettings"),
            _page("Memberships", "group", "tenants_membership"),
            _page("Invitations", "mail_lock", "tenants_invitation"),
            _page("Users", "manage_accounts", "tenants_user"),
            _console("Audit", "manage_search", "audit", ("audit",), "may_audit"),
            _page("Former change log", "history", "admin_logentry"),
        ],
    },
]
