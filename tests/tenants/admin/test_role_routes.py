"""Each route of the console and of access, by each role, by strangers, and across organizations.

The table says which permission a route needs; `rme.tenants.access.roles` says which roles have it.
"""

import pytest
from django.db import transaction
from django.urls import resolve

from rme.tenants.access.roles import PERMISSIONS, Permission
from rme.tenants.models import Membership, Organization, User
from tests import factories
from tests.routes import every_route
from tests.tenants.access.scene import CODE, browser, code_of, log_in, member, with_totp
from tests.tenants.admin.addresses import Addresses
from tests.tenants.admin.scene import MODELS, fill, page, person

pytestmark = pytest.mark.django_db
P = Permission
NOBODY = P.DEPLOYMENT
"""A method that a route does not offer, or only to superusers."""
FILES = {
    "new_import": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE),
    "import_report": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "imports": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "export": (P.SEE_PEOPLE, P.SEE_PEOPLE),
}
ROUTES = {
    "console:first_messages": (P.SEE_MESSAGES, P.SEE_MESSAGES),
    "console:messages": (P.SEE_MESSAGES, P.SEE_MESSAGES),  # a POST to a list chooses its columns
    "console:export": (NOBODY, P.SEE_MESSAGES),
    "console:message": (P.SEE_MESSAGES, NOBODY),
    "console:message_record": (P.SEE_MESSAGES, NOBODY),
    "console:message_peek": (P.SEE_MESSAGES, NOBODY),
    "console:html": (NOBODY, NOBODY),  # this message has no HTML
    "console:actions": (P.SEE_MESSAGES, NOBODY),
    "console:action": (P.SEE_MESSAGES, P.OPERATE),
    "console:choose": (P.OPERATE, P.OPERATE),
    "console:pause": (P.OPERATE, P.OPERATE),
    "console:first_audit": (P.SEE_AUDIT, P.SEE_AUDIT),
    "console:deployment_audit": (NOBODY, NOBODY),
    "console:new_organization": (NOBODY, NOBODY),
    "console:deployment_audit_export": (NOBODY, NOBODY),
    "console:audit": (P.SEE_AUDIT, P.SEE_AUDIT),
    "console:audit_entry": (P.SEE_AUDIT, NOBODY),
    "console:deployment_audit_entry": (NOBODY, NOBODY),
    "console:audit_export": (NOBODY, P.SEE_AUDIT),
    "console:first_templates": (P.SEE_TEMPLATES, P.SEE_TEMPLATES),
    "console:templates": (P.SEE_TEMPLATES, P.SEE_TEMPLATES),
    "console:template_new": (P.CHANGE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:template_peek": (P.SEE_TEMPLATES, NOBODY),
    "console:template": (P.SEE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:template_compare": (P.SEE_TEMPLATES, NOBODY),
    "console:template_import": (P.CHANGE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:template_export": (NOBODY, P.SEE_TEMPLATES),
    "console:template_publish": (NOBODY, P.PUBLISH_TEMPLATES),
    "console:template_preview": (NOBODY, P.SEE_TEMPLATES),
    "console:template_frame": (NOBODY, P.SEE_TEMPLATES),
    "console:template_draft": (NOBODY, P.CHANGE_TEMPLATES),
    "console:template_schema": (P.SEE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:first_send": (P.OPERATE, P.OPERATE),
    "console:send": (P.OPERATE, P.OPERATE),
    "console:send_frame": (NOBODY, P.OPERATE),
    "console:partials": (P.SEE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:template_xliff": (P.SEE_TEMPLATES, NOBODY),
    "console:template_translation": (NOBODY, P.CHANGE_TEMPLATES),
    "console:partial": (P.SEE_TEMPLATES, P.CHANGE_TEMPLATES),
    "console:partial_publish": (NOBODY, P.PUBLISH_TEMPLATES),
    "console:sample_contacts": (P.SEE_MESSAGES, NOBODY),
    "console:first_providers": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:providers": (P.SEE_SETTINGS, P.CHANGE_SETTINGS),
    "console:route": (P.SEE_SETTINGS, NOBODY),
    "console:first_domains": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:domains": (P.SEE_SETTINGS, NOBODY),
    "console:domain": (P.SEE_SETTINGS, P.CHANGE_SETTINGS),
    "console:new_domain": (P.CHANGE_SETTINGS, P.CHANGE_SETTINGS),
    "console:callbacks": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:callback": (P.SEE_SETTINGS, NOBODY),
    "console:new_provider": (P.CHANGE_SETTINGS, P.CHANGE_SETTINGS),
    "console:provider": (P.SEE_SETTINGS, P.CHANGE_SETTINGS),
    "console:provider_settings": (P.CHANGE_SETTINGS, P.CHANGE_SETTINGS),
    "console:filters": (P.SEE_MESSAGES, P.SEE_MESSAGES),
    "console:filter": (NOBODY, P.GRANT_ROLES),  # of another person
    "console:person": (P.SEE_MESSAGES, P.CHANGE_PEOPLE),
    "console:person_peek": (P.SEE_MESSAGES, NOBODY),
    "console:first_contacts": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:contacts": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    **{
        f"console:{name}": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE)
        for name in ("contact_new", "contact_edit", "contacts_delete", "contacts_merge")
    },
    "console:first_suppressions": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:suppressions": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:suppression_new": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE),
    "console:suppression": (P.SEE_PEOPLE, P.CHANGE_PEOPLE),
    "console:consent_entry": (P.SEE_PEOPLE, NOBODY),
    "console:test_entries": (P.SEE_PEOPLE, NOBODY),  # a POST names an entry
    "console:lift": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE),
    "console:first_requests": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:requests": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:request": (P.SEE_SETTINGS, NOBODY),
    "console:first_programs": (P.CHANGE_KEYS, P.CHANGE_KEYS),
    "console:programs": (P.CHANGE_KEYS, NOBODY),
    "console:first_team": (P.GRANT_ROLES, P.GRANT_ROLES),
    "console:team": (P.GRANT_ROLES, P.GRANT_ROLES),
    **{
        f"console:{name}": (P.GRANT_ROLES, P.GRANT_ROLES)
        for name in ("member_role", "member_remove", "withdraw_invitation")
    },
    "console:first_compose": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:compose": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:first_consent": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:first_privacy": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:consent": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:ledger": (P.SEE_PEOPLE, P.CHANGE_PEOPLE),
    "console:ledger_export": (NOBODY, P.SEE_PEOPLE),
    "console:privacy": (P.SEE_PEOPLE, P.SEE_PEOPLE),
    "console:privacy_new": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE),
    "console:privacy_request": (P.SEE_PEOPLE, P.CHANGE_PEOPLE),
    "console:privacy_file": (NOBODY, P.CHANGE_PEOPLE),
    "console:first_webhooks": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:webhooks": (P.SEE_SETTINGS, NOBODY),
    "console:webhook_deliveries": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    "console:webhook_delivery": (P.SEE_SETTINGS, P.CHANGE_WEBHOOKS),
    "console:new_webhook": (P.CHANGE_WEBHOOKS, P.CHANGE_WEBHOOKS),
    "console:webhook_settings": (P.CHANGE_WEBHOOKS, P.CHANGE_WEBHOOKS),
    "console:webhook_replay": (P.CHANGE_WEBHOOKS, P.CHANGE_WEBHOOKS),
    "console:webhooks_again": (P.CHANGE_WEBHOOKS, P.CHANGE_WEBHOOKS),
    "first_steps": (P.SEE_SETTINGS, P.SEE_SETTINGS),
    **{
        f"admin:{model}_{name}": needed
        for model in (
            *("crm_account", "crm_case", "crm_contact", "crm_event", "crm_eventregistration"),
            *("crm_speaker", "crm_exhibitor", "messaging_suppression"),
        )
        for name, needed in FILES.items()
    },
    **{
        f"admin:crm_{name}_import": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE)
        for name in (
            *("account", "case", "contact", "event", "eventregistration", "speaker", "exhibitor"),
        )
    },
    "admin:messaging_suppression_import": (P.CHANGE_PEOPLE, P.CHANGE_PEOPLE),
    **{
        f"admin:{name}": (needed, needed)
        for name, needed in {
            "tenants_application_secret": P.CHANGE_KEYS,
            # of a program that may do more than a developer
            "tenants_application_rotate": P.GRANT_ROLES,
            "tenants_application_confirm": P.GRANT_ROLES,
            "tenants_application_end_former": P.CHANGE_KEYS,
            "tenants_apikey_secret": P.CHANGE_KEYS,
            "tenants_apikey_rotate": P.GRANT_ROLES,
            "tenants_apikey_confirm": P.GRANT_ROLES,
            "tenants_apikey_revoke": P.CHANGE_KEYS,
            "tenants_invitation_secret": P.GRANT_ROLES,
            "tenants_membership_act_as": P.GRANT_ROLES,
            "tenants_user_act_as": P.DEPLOYMENT,
            "auth_user_password_change": P.DEPLOYMENT,
            "crm_platform_test_connection": P.CHANGE_SETTINGS,
        }.items()
    },
    **{
        f"admin:tenants_{model}_{name}": needed
        for model, needed_by in {
            # the third: of a program that may do more than a developer
            "application": (P.CHANGE_KEYS, P.CHANGE_KEYS, P.GRANT_ROLES),
            "apikey": (P.CHANGE_KEYS, P.CHANGE_KEYS, P.GRANT_ROLES),
            "membership": (P.GRANT_ROLES, P.GRANT_ROLES, P.GRANT_ROLES),
            "invitation": (P.GRANT_ROLES, P.GRANT_ROLES, NOBODY),
            "organization": (P.GRANT_ROLES, NOBODY, P.GRANT_ROLES),
            "user": (P.DEPLOYMENT, P.DEPLOYMENT, P.DEPLOYMENT),
        }.items()
        for name, needed in {
            "changelist": (needed_by[0], needed_by[0]),
            "add": (needed_by[1], needed_by[1]),
            "change": (needed_by[0], needed_by[2]),
            "history": (needed_by[0], needed_by[0]),
            "delete": (needed_by[1], needed_by[1]),
        }.items()
    },
}
"""By the name of a route: the permissions that GET and POST need."""

SUPPORT_OPENS = (
    *("/admin/login/", "/admin/logout/", "/admin/password_change/", "/admin/account/"),
    "/admin/acting/end/",  # ends what whoever acts as another user began
    "/admin/messaging/message/",
    *(f"/admin/console/{page}/" for page in ("messages", "review", "outbox", "search")),
    *("/admin/jsi18n/", "/admin/theme.css", "/admin/autocomplete/", "/admin/search/"),
)
"""What support may open, beside the first page."""


@pytest.fixture
def addresses(org):
    fill(org)
    found = Addresses(org, User.objects.create_superuser("root"))
    return {each: name for each in found.all() if (name := _name(each)) in ROUTES}


def _name(path):
    return resolve(path).view_name


def allowed(client, method, path):
    """Return whether a call was let through; whatever it did is undone."""
    with transaction.atomic():
        status = getattr(client, method)(path).status_code
        transaction.set_rollback(True)
    assert status < 500, (method, path, status)
    return status not in (403, 404, 405)


def test_every_route_of_the_console_and_of_access_is_in_the_table(org):
    fill(org)
    found = {_name(each) for each in Addresses(org, User.objects.create_superuser("root")).all()}
    areas = ("console:", "admin:tenants_")
    assert {each for each in found if each.startswith(areas)} - ROUTES.keys() == set()
    assert ROUTES.keys() - found == set()


def test_each_role_can_do_exactly_its_permissions(org, addresses):
    wrong = []
    for role in Membership.Role.values:
        client = person(role, org, role)
        for path, name in addresses.items():
            for method, needed in zip(("get", "post"), ROUTES[name], strict=True):
                expected = needed in PERMISSIONS[role]
                if allowed(client, method, path) != expected:
                    wrong.append((role, method, path, expected))
    assert wrong == []


def test_owner_of_another_organization_has_no_access(org, addresses):
    other = factories.organization("other")
    stranger = person("stranger", other, Membership.Role.OWNER)
    theirs = [path for path in addresses if any(each.isdigit() for each in path) or "acme" in path]
    assert len(theirs) > 60
    calls = [(method, path) for path in theirs for method in ("get", "post")]
    assert [call for call in calls if allowed(stranger, *call)] == []


def test_rows_of_another_organization_are_not_found_under_ones_own(org, addresses):
    stranger = person("stranger", factories.organization("other"), Membership.Role.OWNER)
    own = "/admin/console/other/"
    names = ("message", "message_record", "html", "action", "person", "lift", "filter", "provider")
    names += ("contact_edit", "suppression", "consent_entry")
    names += ("webhook_deliveries", "webhook_delivery", "webhooks_again", "webhook_settings")
    names += ("webhook_replay", "domain", "provider_settings")
    names += ("privacy_request", "privacy_file", "member_role", "member_remove")
    names += ("withdraw_invitation",)
    mixed = [
        path.replace("/admin/console/acme/", own)
        for path, name in addresses.items()
        if name in {f"console:{each}" for each in names}
    ]
    assert len(mixed) == len(names)
    calls = [(method, path) for path in mixed for method in ("get", "post")]
    assert [call for call in calls if allowed(stranger, *call)] == []
    assert allowed(stranger, "get", f"{own}messages/")


def test_support_with_a_second_factor_opens_only_its_area(org):
    other = factories.organization("other")
    for each in (org, other):
        fill(each)
    Organization.objects.filter(pk=org.pk).update(second_factor_required=True)
    with_totp(member(org, Membership.Role.SUPPORT))
    client = browser()
    log_in(client)
    assert client.post(CODE, {"code": code_of()})["Location"] == "/admin/"

    def status(path):
        # the address of a row leads to that of its page
        return client.get(path, follow=True).status_code

    routes = {each for each in every_route() if each.startswith("/admin/") and each != "/admin/"}
    areas = sorted(each for each in routes if not each.startswith(SUPPORT_OPENS))
    theirs = [
        page(model, "change", row.pk)
        for model in MODELS
        for row in model._default_manager.all()
        if getattr(row, "organization_id", None) == other.pk
    ]
    assert len(areas) + len(theirs) > 60
    found = {path: status(path) for path in areas}
    assert {path: each for path, each in found.items() if each not in (403, 404)} == {}
    found = {path: status(path) for path in theirs}
    assert {path: each for path, each in found.items() if each != 404} == {}
    assert status("/admin/messaging/message/") == 200
    assert status(f"/admin/console/{org.pk}/messages/") == 200
    assert status(f"/admin/console/{other.pk}/messages/") == 404
