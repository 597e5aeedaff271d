"""Pages for push devices."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from push.models import Device, token_digest
from rme.tenants.admin_base import TenantAdmin, TenantForm


class DeviceForm(TenantForm):
    """A device's token is written once; nobody has to read it."""

    def clean(self) -> dict[str, Any]:
        """Find the token's digest, and refuse a token that is registered."""
        given = super().clean()
        organization, token = self.own_organization(), given.get("token")
        if token and organization:
            self.instance.token_digest = token_digest(token)
            known = Device.objects.filter(
                organization=organization, token_digest=self.instance.token_digest
            )
            if known.exists():
                self.add_error("token", forms.ValidationError("This token is registered."))
        return given


@admin.register(Device)
class DeviceAdmin(TenantAdmin):
    form = DeviceForm
    list_display = ("__str__", "platform", "app", "contact_id", "user_id", "active", "last_seen_at")
    list_filter = ("platform", "active", "environment")
    search_fields = ("id", "contact_id", "user_id", "name", "app")
    readonly_fields = ("id", "inactive_reason", "inactive_since", "registered_at", "last_seen_at")
    ordering: ClassVar[tuple[str, ...]] = ("-id",)

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("token",) if obj else ()
