"""What acts on live mail at once needs the right of a table, on every page of the admin."""

import pytest
from django.contrib import admin
from django.test import RequestFactory

from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import DeploymentAdmin, TenantAdmin
from rme.tenants.models import User

pytestmark = pytest.mark.django_db

MODEL_RIGHTS = {
    "bot.BotSettings": Permission.CHANGE_SETTINGS,
    "crm.Account": Permission.CHANGE_PEOPLE,
    "crm.Case": Permission.CHANGE_PEOPLE,
    "crm.Event": Permission.CHANGE_PEOPLE,
    "crm.EventRegistration": Permission.CHANGE_PEOPLE,
    "crm.Exhibitor": Permission.CHANGE_PEOPLE,
    "crm.Platform": Permission.CHANGE_SETTINGS,
    "crm.Speaker": Permission.CHANGE_PEOPLE,
    "messaging.Category": Permission.OPERATE,
    "messaging.Pause": Permission.OPERATE,
    "messaging.SendingRules": Permission.CHANGE_SETTINGS,
    "push.Device": Permission.CHANGE_PEOPLE,
    "tenants.ApiKey": Permission.CHANGE_KEYS,
    "tenants.Application": Permission.CHANGE_KEYS,
    "tenants.Invitation": Permission.GRANT_ROLES,
    "tenants.Membership": Permission.GRANT_ROLES,
    "tenants.Organization": Permission.GRANT_ROLES,
}
"""The right to change a row of a model at all."""


def changeable(request):
    """Return the pages with a form that anybody but a superuser can change, by model."""
    pages = {}
    for model, model_admin in admin.site._registry.items():
        if not isinstance(model_admin, TenantAdmin) or isinstance(model_admin, DeploymentAdmin):
            continue
        if not (
            model_admin.has_add_permission(request) or model_admin.has_change_permission(request)
        ):
            continue
        shown = model_admin.get_form(request).base_fields
        fields = set(shown) - set(model_admin.get_readonly_fields(request))
        if fields:
            pages[model._meta.label] = model_admin
    return pages


def test_every_form_is_in_the_table_with_the_permission_of_its_page(org):
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    pages = changeable(request)
    assert {label: each.write_permission for label, each in pages.items()} == MODEL_RIGHTS
