"""The admin page of an organization's platform, with the connection test."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core import errors
from rme.core.http import checks
from rme.core.process import admission
from rme.core.process.errands import Overrun
from rme.crm import mapping, platform_check, platforms
from rme.crm.admin.platform_form import (
    SECRET_FIELDS,
    PlatformForm,
    mapping_name,
    mapping_names,
    setting_name,
    settings_of,
)
from rme.crm.connectors import REMOTE
from rme.crm.connectors.base import PlatformError, PlatformSlow
from rme.crm.connectors.conditions import Description
from rme.crm.models import Platform
from rme.crm.platform_check import KindCheck, PlatformBusy, try_describe
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.actions import action
from rme.tenants.admin.base import TenantAdmin

_CHECK, _SAVE = "platform", "platform save"
"""The names of the checks of an organization's platform."""
_DESCRIPTION = "platform_description"
"""The attribute of a request that holds the platform's description."""
_REMOTE = f"kind !== '{platforms.EMBEDDED}'"


@admin.register(Platform)
class PlatformAdmin(TenantAdmin):
    read_permission: Permission = Permission.CHANGE_SETTINGS
    write_permission: Permission = Permission.CHANGE_SETTINGS
    form = PlatformForm
    list_display = ("organization", "kind", "updated_at")
    list_select_related: Any = ("organization",)
    ordering: Any = ("organization_id",)
    actions_detail: ClassVar[list[str]] = ["test_connection"]
    secret_fields: ClassVar[frozenset[str]] = SECRET_FIELDS
    # The theme shows a field while its expression is true: the fields of the chosen platform.
    conditional_fields: ClassVar[dict[str, str]] = {
        "preset": _REMOTE,
        "unchecked": _REMOTE,
        **{
            setting_name(kind, name): f"kind === '{kind}'"
            for kind in REMOTE
            for name in settings_of(kind)
        },
        **{
            mapping_name(kind, name): _REMOTE
            for kind in mapping.KINDS
            for name in mapping_names(kind)
        },
    }

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> object:
        settings = [setting_name(kind, name) for kind in REMOTE for name in settings_of(kind)]
        return [
            (None, {"fields": ("organization", "kind", *settings, "preset", "unchecked")}),
            *(
                (
                    kind,
                    {
                        "classes": ["tab"],
                        "fields": [mapping_name(kind, name) for name in mapping_names(kind)],
                    },
                )
                for kind in mapping.KINDS
            ),
        ]

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)  # a class of this request alone
        form.description = getattr(request, _DESCRIPTION, None)
        return form

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: object = None,
    ) -> HttpResponse:
        """Describe the platform, then save: Django's view opens a transaction."""
        if request.method == "POST":
            setattr(request, _DESCRIPTION, self._describe(request, object_id))
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, extra_context
        )
        return response

    def _describe(
        self, request: HttpRequest, object_id: str | None
    ) -> Description | PlatformError | None:
        """Return the platform's description if the form is valid otherwise, or None."""
        row = self.get_object(request, unquote(object_id)) if object_id else None
        if not (
            self.has_change_permission(request, row) if row else self.has_add_permission(request)
        ):
            return None
        form = self.get_form(request, row, change=row is not None)(request.POST, instance=row)
        record = form.to_describe if form.is_valid() else None
        if record is None:
            return None
        organization_id = record.organization_id
        try:
            return checks.answer_of(request, organization_id, _SAVE, try_describe, record)
        except Overrun:
            return PlatformSlow()
        except errors.RateLimited as refusal:
            if admission.starts_again(request.META):
                raise
            return PlatformBusy(refusal.message)

    def save_model(
        self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool
    ) -> None:
        obj.updated_at = Now()
        super().save_model(request, obj, form, change)
        platforms.forget(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        platforms.forget(obj.organization_id)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        organizations = list(queryset.values_list("organization_id", flat=True))
        super().delete_queryset(request, queryset)
        for organization_id in organizations:
            platforms.forget(organization_id)

    @action(description=_("Test connection"), url_path="test-connection", permissions=["change"])
    def test_connection(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Compare the mapping with the platform's description, and show the result."""
        row = self.get_object(request, object_id)
        problem = ""
        if request.method == "POST" and row.kind in REMOTE:
            work, organization_id = platform_check.compare, row.organization_id
            arguments = (organization_id, audit.actor_of(request))
            try:
                checks.start(request, organization_id, _CHECK, work, *arguments)
                return HttpResponseRedirect(request.path)
            except errors.RateLimited as refusal:
                problem = gettext("Not done. %(message)s") % {"message": refusal.message}
        elif row.kind not in REMOTE:
            problem = gettext("Records are kept here: there is nothing to connect to.")
        check = checks.find(row.organization_id, _CHECK)
        result = check.result if check else {}
        context = {
            "title": gettext("Test connection"),
            "is_running": bool(check and check.is_running),
            "result": problem or (check and check.problem) or result.get("text", ""),
            "found": [KindCheck(**each) for each in result.get("kinds", ())],
        }
        return self.show(request, "platform_test", row, **context)
