"""The entries of the menu: each leads to its first page, and all of its pages are its tabs."""

from rme.sidebar.kinds import HomePage, MenuEntry, OrganizationPage, Page
from rme.tenants.access.roles import Permission

P = Permission


def _console(title: str, permission: Permission, *names: str, models: tuple[str, ...] = ()) -> Page:
    route, *lower = (f"console:{name}" for name in names)
    return Page(title, permission, route, tuple(lower), models)


def _model(title: str, model: str) -> Page:
    return Page(title, None, models=(model,))


MENU: tuple[tuple[str, tuple[MenuEntry, ...]], ...] = (
    (
        "",
        (
            MenuEntry("Home", "home", (HomePage("Home", P.SEE_MESSAGES, "admin:index"),)),
            MenuEntry(
                "Messages",
                "mail",
                (
                    _console(
                        *("Messages", P.SEE_MESSAGES, "messages", "message", "message_record"),
                        *("message_peek", "filters", "actions", "action", "choose", "pause"),
                    ),
                ),
            ),
            MenuEntry("Send a message", "send", (_console("Send a message", P.OPERATE, "send"),)),
            MenuEntry(
                "Templates",
                "description",
                (
                    _console(
                        *("Templates", P.SEE_TEMPLATES, "templates", "template"),
                        *("template_compare", "template_import", "template_schema"),
                    ),
                    _console("Partials", P.SEE_TEMPLATES, "partials", "partial"),
                ),
            ),
        ),
    ),
    (
        "People",
        (
            MenuEntry(
                "Contacts",
                "person",
                (
                    _console(
                        *("Contacts", P.SEE_PEOPLE, "contacts", "contact_new", "contact_edit"),
                        *("contacts_delete", "contacts_merge", "person", "person_peek"),
                        models=("crm.Contact",),
                    ),
                    _model("Devices", "push.Device"),
                ),
            ),
            MenuEntry(
                "Suppressions",
                "block",
                (
                    _console(
                        *("Suppressions", P.SEE_PEOPLE, "suppressions", "suppression_new"),
                        *("suppression", "lift", "test_entries"),
                        models=("messaging.Suppression",),
                    ),
                ),
            ),
            MenuEntry(
                "Consent",
                "handshake",
                (
                    _console("Entries", P.SEE_PEOPLE, "consent", "consent_entry"),
                    _console("Ledger and chain", P.SEE_PEOPLE, "ledger"),
                ),
            ),
            MenuEntry(
                "Privacy requests",
                "privacy_tip",
                (
                    _console(
                        *("Privacy requests", P.SEE_PEOPLE, "privacy", "privacy_new"),
                        "privacy_request",
                    ),
                ),
            ),
        ),
    ),
    (
        "Delivery",
        (
            MenuEntry(
                "Providers and routing",
                "cell_tower",
                (
                    _console(
                        *("Providers and routing", P.SEE_SETTINGS, "providers", "provider"),
                        *("provider_settings", "new_provider", "route"),
                    ),
                    _console("Callback log", P.SEE_SETTINGS, "callbacks"),
                ),
            ),
            MenuEntry(
                "Sender domains",
                "alternate_email",
                (_console("Sender domains", P.SEE_SETTINGS, "domains", "domain", "new_domain"),),
            ),
            MenuEntry(
                "Sending rules",
                "speed",
                (
                    _model("Rules", "messaging.SendingRules"),
                    _model("Categories", "messaging.Category"),
                    _model("Pauses", "messaging.Pause"),
                ),
            ),
        ),
    ),
    (
        "Developers",
        (
            MenuEntry(
                "Applications and keys",
                "key",
                (
                    _console(
                        *("Applications and keys", P.CHANGE_KEYS, "programs"),
                        models=("tenants.Application", "tenants.ApiKey"),
                    ),
                ),
            ),
            MenuEntry(
                "Webhooks",
                "webhook",
                (
                    _console(
                        *("Webhooks", P.SEE_SETTINGS, "webhooks", "webhook_deliveries"),
                        *("webhook_delivery", "webhooks_again", "new_webhook"),
                        *("webhook_settings", "webhook_replay"),
                    ),
                ),
            ),
            MenuEntry(
                "Request log",
                "lists",
                (
                    _console("API requests", P.SEE_SETTINGS, "requests", "request"),
                    _console("Compose a request", P.SEE_SETTINGS, "compose"),
                ),
            ),
            MenuEntry(
                "API reference",
                "menu_book",
                (Page("API reference", None, "/rme/v1/docs"),),
            ),
        ),
    ),
    (
        "Settings",
        (
            MenuEntry(
                "Organization",
                "domain",
                (
                    OrganizationPage(
                        "Settings", P.GRANT_ROLES, "admin:tenants_organization_change"
                    ),
                    Page(
                        *(
                            "All organizations",
                            P.DEPLOYMENT,
                            "admin:tenants_organization_changelist",
                        ),
                        models=("tenants.Organization",),
                    ),
                ),
            ),
            MenuEntry(
                "Team",
                "group",
                (
                    _model("Members", "tenants.Membership"),
                    _model("Invitations", "tenants.Invitation"),
                    Page("Roles", P.GRANT_ROLES, "roles"),
                    Page(
                        *("All users", P.DEPLOYMENT, "admin:tenants_user_changelist"),
                        models=("tenants.User",),
                    ),
                ),
            ),
            MenuEntry(
                "CRM connection",
                "hub",
                (
                    _model("Connection", "crm.Platform"),
                    _model("Accounts", "crm.Account"),
                    _model("Cases", "crm.Case"),
                    _model("Events", "crm.Event"),
                    _model("Registrations", "crm.EventRegistration"),
                    _model("Speakers", "crm.Speaker"),
                    _model("Exhibitors", "crm.Exhibitor"),
                ),
            ),
            MenuEntry("Bots", "smart_toy", (_model("Bots", "bot.BotSettings"),)),
            MenuEntry(
                "Audit",
                "manage_search",
                (
                    _console(
                        *("Audit", P.SEE_AUDIT, "audit", "audit_entry"),
                        *("deployment_audit", "deployment_audit_entry"),
                    ),
                    Page(
                        *("Former change log", P.DEPLOYMENT, "admin:admin_logentry_changelist"),
                        models=("admin.LogEntry",),
                    ),
                ),
            ),
        ),
    ),
)
