"""The page for partials, which templates share."""

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from messaging.content import partials, templates
from messaging.models import Partial
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.choices import TenantForm
from rme.tenants.roles import Permission


class PartialForm(TenantForm):
    """A partial. It must parse, and so must all texts that use it."""

    def clean(self) -> dict[str, Any]:
        """Check the partial and the active texts that use it."""
        given = super().clean()
        organization, name = self.own_organization(), given.get("name") or self.instance.name
        if organization and name and "text" in given:
            for problem in partials.problems(organization.pk, name, given["text"]):
                self.add_error("text", problem)
        return given


@admin.register(Partial)
class PartialAdmin(TenantAdmin):
    """Pieces that templates share. One that an active text uses cannot be deleted."""

    read_permission: Permission = Permission.SEE_TEMPLATES
    write_permission: Permission = Permission.CHANGE_TEMPLATES
    form = PartialForm
    fields = ("organization", "name", "text", "updated_at")
    readonly_fields = ("updated_at",)
    fixed_fields = ("organization", "name")
    list_display = ("name", "updated_at", "organization")
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name",)

    def save_model(self, request: HttpRequest, obj: Partial, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        templates.forget_partials(obj.organization_id)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Report the active texts that use one of them as protected, which prevents deletion."""
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        needed = [
            f"{problem} (needs {row.name})"
            for row in objs
            for problem in partials.problems(row.organization_id, row.name, None)
        ]
        return deleted, counts, missing, [*protected, *needed]
