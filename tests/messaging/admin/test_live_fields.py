"""What acts on live mail at once needs the right of the table, on every page of the admin."""

import pytest
from django.contrib import admin
from django.test import RequestFactory

from messaging.admin.live_fields import FIELD_RIGHTS, MODEL_RIGHTS
from rme.tenants.admin.base import DeploymentAdmin, TenantAdmin
from rme.tenants.models import User

pytestmark = pytest.mark.django_db


def changeable(request):
    """Return the fields of all forms that anybody but a superuser can change, by model."""
    fields_by_model = {}
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
            fields_by_model[model._meta.label] = (model_admin, fields)
    return fields_by_model


def test_every_form_is_in_the_table_with_the_permission_of_its_page(org):
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    pages = changeable(request)
    assert {label: each.write_permission for label, (each, _) in pages.items()} == MODEL_RIGHTS
    fields = {f"{label}.{name}" for label, (_, names) in pages.items() for name in names}
    assert FIELD_RIGHTS.keys() - fields == set()
