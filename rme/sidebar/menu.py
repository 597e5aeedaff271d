"""The entries of the menu: each leads to its first page, and all of its pages are its tabs."""

from django.utils.translation import gettext_noop as N_

from rme.sidebar.kinds import HomePage, MenuEntry, MenuPage, OrganizationPage
from rme.tenants.access.roles import Permission

P = Permission


def _console(
    title: str, permission: Permission, *names: str, models: tuple[str, ...] = ()
) -> MenuPage:
    route, *lower = (f"console:{name}" for name in names)
    return MenuPage(title, permission, route, tuple(lower), models)


def _model(title: str, model: str) -> MenuPage:
    return MenuPage(title, None, models=(model,))


MENU: tuple[tuple[str, tuple[MenuEntry, ...]], ...] = (
    (
        "",
        (
            MenuEntry(N_("Home"), "home", (HomePage(N_("Home"), P.SEE_MESSAGES, "admin:index"),)),
            MenuEntry(
                N_("Messages"),
                "mail",
                (
                    _console(
                        *(N_("Messages"), P.SEE_MESSAGES, "messages", "message", "message_record"),
                        *("message_peek", "filters", "actions", "action", "choose", "pause"),
                    ),
                ),
            ),
            MenuEntry(
                N_("Send a message"), "send", (_console(N_("Send a message"), P.OPERATE, "send"),)
            ),
            MenuEntry(
                N_("Templates"),
                "description",
                (
                    _console(
                        *(N_("Templates"), P.SEE_TEMPLATES, "templates", "template"),
                        *("template_compare", "template_import", "template_new"),
                        *("template_peek", "template_schema"),
                        *("template_xliff", "template_translation"),
                    ),
                    _console(N_("Partials"), P.SEE_TEMPLATES, "partials", "partial"),
                ),
            ),
        ),
    ),
    (
        N_("People"),
        (
            MenuEntry(
                N_("Contacts"),
                "person",
                (
                    _console(
                        *(N_("Contacts"), P.SEE_PEOPLE, "contacts", "contact_new", "contact_edit"),
                        *("contacts_delete", "contacts_merge", "person", "person_peek"),
                        models=("crm.Contact",),
                    ),
                    _model(N_("Devices"), "push.Device"),
                ),
            ),
            MenuEntry(
                N_("Suppressions"),
                "block",
                (
                    _console(
                        *(N_("Suppressions"), P.SEE_PEOPLE, "suppressions", "suppression_new"),
                        *("suppression", "lift", "test_entries"),
                        models=("messaging.Suppression",),
                    ),
                ),
            ),
            MenuEntry(
                N_("Consent"),
                "handshake",
                (
                    _console(N_("Entries"), P.SEE_PEOPLE, "consent", "consent_entry"),
                    _console(N_("Ledger and chain"), P.SEE_PEOPLE, "ledger"),
                ),
            ),
            MenuEntry(
                N_("Privacy requests"),
                "privacy_tip",
                (
                    _console(
                        *(N_("Privacy requests"), P.SEE_PEOPLE, "privacy", "privacy_new"),
                        "privacy_request",
                    ),
                ),
            ),
        ),
    ),
    (
        N_("Delivery"),
        (
            MenuEntry(
                N_("Providers and routing"),
                "cell_tower",
                (
                    _console(
                        *(N_("Providers and routing"), P.SEE_SETTINGS, "providers", "provider"),
                        *("provider_settings", "new_provider", "route"),
                    ),
                    _console(N_("Callback log"), P.SEE_SETTINGS, "callbacks", "callback"),
                ),
            ),
            MenuEntry(
                N_("Sender domains"),
                "alternate_email",
                (
                    _console(
                        N_("Sender domains"), P.SEE_SETTINGS, "domains", "domain", "new_domain"
                    ),
                ),
            ),
            MenuEntry(
                N_("Sending rules"),
                "speed",
                (
                    _model(N_("Rules"), "messaging.SendingRules"),
                    _model(N_("Categories"), "messaging.Category"),
                    _model(N_("Pauses"), "messaging.Pause"),
                ),
            ),
        ),
    ),
    (
        N_("Developers"),
        (
            MenuEntry(
                N_("Applications and keys"),
                "key",
                (
                    _console(
                        *(N_("Applications and keys"), P.CHANGE_KEYS, "programs"),
                        models=("tenants.Application", "tenants.ApiKey"),
                    ),
                ),
            ),
            MenuEntry(
                N_("Webhooks"),
                "webhook",
                (
                    _console(
                        *(N_("Webhooks"), P.SEE_SETTINGS, "webhooks", "webhook_deliveries"),
                        *("webhook_delivery", "webhooks_again", "new_webhook"),
                        *("webhook_settings", "webhook_replay"),
                    ),
                ),
            ),
            MenuEntry(
                N_("Request log"),
                "lists",
                (
                    _console(N_("API requests"), P.SEE_SETTINGS, "requests", "request"),
                    _console(N_("Compose a request"), P.SEE_SETTINGS, "compose"),
                ),
            ),
            MenuEntry(
                N_("API reference"),
                "menu_book",
                (MenuPage(N_("API reference"), None, "/rme/v1/docs"),),
            ),
        ),
    ),
    (
        N_("Settings"),
        (
            MenuEntry(
                N_("Organization"),
                "domain",
                (
                    OrganizationPage(
                        N_("Settings"), P.GRANT_ROLES, "admin:tenants_organization_change"
                    ),
                    MenuPage(
                        *(
                            N_("All organizations"),
                            P.DEPLOYMENT,
                            "admin:tenants_organization_changelist",
                            ("console:new_organization",),
                        ),
                        models=("tenants.Organization",),
                    ),
                ),
            ),
            MenuEntry(
                N_("Team"),
                "group",
                (
                    _console(
                        *(N_("Members"), P.GRANT_ROLES, "team", "member_role"),
                        *("member_remove", "withdraw_invitation"),
                        models=("tenants.Membership", "tenants.Invitation"),
                    ),
                    MenuPage(N_("Roles"), P.GRANT_ROLES, "roles"),
                    MenuPage(
                        *(N_("All users"), P.DEPLOYMENT, "admin:tenants_user_changelist"),
                        models=("tenants.User",),
                    ),
                ),
            ),
            MenuEntry(
                N_("CRM connection"),
                "hub",
                (
                    _model(N_("Connection"), "crm.Platform"),
                    _model(N_("Accounts"), "crm.Account"),
                    _model(N_("Cases"), "crm.Case"),
                    _model(N_("Events"), "crm.Event"),
                    _model(N_("Registrations"), "crm.EventRegistration"),
                    _model(N_("Speakers"), "crm.Speaker"),
                    _model(N_("Exhibitors"), "crm.Exhibitor"),
                ),
            ),
            MenuEntry(N_("Bots"), "smart_toy", (_model(N_("Bots"), "bot.BotSettings"),)),
            MenuEntry(
                N_("Audit"),
                "manage_search",
                (
                    _console(
                        *(N_("Audit"), P.SEE_AUDIT, "audit", "audit_entry"),
                        *("deployment_audit", "deployment_audit_entry"),
                    ),
                    MenuPage(
                        *(N_("Former change log"), P.DEPLOYMENT, "admin:admin_logentry_changelist"),
                        models=("admin.LogEntry",),
                    ),
                ),
            ),
        ),
    ),
)
