"""Pages for push devices."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import display_for_value
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from messaging.webhooks import device_events
from push import device_tokens
from push.device_changes import DeviceChange, What
from push.models import Device
from rme.core.errors import InvalidPayload
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.choices import TenantForm

HAPPENED = {
    "REGISTERED": gettext_noop("registered"),
    "MOVED": gettext_noop("moved to another contact or user"),
    "ACTIVATED": gettext_noop("activated"),
    "REPLACED": gettext_noop("got a new token"),
    "DEACTIVATED": gettext_noop("deactivated"),
}
"""The entries of a device's history in words."""


class DeviceForm(TenantForm):
    """The form of a device. Its token can be entered once, and is never shown."""

    def clean(self) -> dict[str, Any]:
        """Set the token's digest, and refuse a token that is already registered."""
        cleaned = super().clean()
        organization, platform = self.own_organization(), cleaned.get("platform")
        if cleaned.get("token") and organization and platform:
            try:
                token = device_tokens.parse(platform, cleaned["token"])
            except InvalidPayload as error:
                for detail in error.details:
                    self.add_error("token", f"{detail.field} {detail.message}.")
                return cleaned
            cleaned["token"], self.instance.token_digest = token.text, token.digest
            same_token = Device.objects.filter(
                organization=organization, token_digest=self.instance.token_digest
            )
            if same_token.exists():
                self.add_error("token", forms.ValidationError(_("This token is registered.")))
        return cleaned


@admin.register(Device)
class DeviceAdmin(TenantAdmin):
    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
    form = DeviceForm
    list_display = ("__str__", "platform", "app", "contact_id", "user_id", "active", "last_seen_at")
    list_filter = ("platform", "active", "environment")
    search_fields = ("id", "contact_id", "user_id", "name", "app")
    readonly_fields = (
        *("id", "inactive_reason", "inactive_since", "registered_at", "last_seen_at"),
        "shown_history",
    )
    ordering: ClassVar[tuple[str, ...]] = ("-id",)

    def save_model(
        self, request: HttpRequest, obj: Device, form: "ModelForm[Any]", change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            change_kind = What.REGISTERED if obj.active else What.DEACTIVATED
        elif "active" in form.changed_data:
            change_kind = What.ACTIVATED if obj.active else What.DEACTIVATED
        elif {"contact_id", "user_id"} & set(form.changed_data):
            change_kind = What.MOVED
        else:
            return
        obj.refresh_from_db()
        device_events.write([DeviceChange.of(obj, change_kind)])

    def delete_model(self, request: HttpRequest, obj: Device) -> None:
        self.delete_queryset(request, Device.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete devices; Django's page may have no transaction open for several."""
        with transaction.atomic():
            rows = list(queryset.select_for_update(of=("self",)))
            Device.objects.filter(pk__in=[row.pk for row in rows]).delete()
            device_events.write([DeviceChange.of(row, What.REMOVED) for row in rows])

    @admin.display(description=gettext_lazy("history"))
    def shown_history(self, row: Device) -> str:
        """Return the device's history as HTML, newest first."""
        entries = (
            (
                display_for_value(datetime.fromisoformat(each["at"]), ""),
                _(HAPPENED.get(each["what"], each["what"])),
                f": {each['reason']}" if each["reason"] else "",
            )
            for each in row.history[::-1]
        )
        return format_html_join(mark_safe("<br>"), "{}: {}{}", entries)

    def get_exclude(self, request: HttpRequest, obj: object = None) -> object:
        return ("token",) if obj else ()
