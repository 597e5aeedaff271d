"""Pages for push devices."""

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from push.models import Device, token_digest
from rme.tenants.admin_base import TenantAdmin


@admin.register(Device)
class DeviceAdmin(TenantAdmin):
    list_display = ("__str__", "platform", "app", "contact_id", "active", "registered_at")
    list_filter = ("platform", "active")
    search_fields = ("id", "contact_id", "user_id", "name")
    readonly_fields = ("id", "inactive_reason", "inactive_since", "registered_at", "last_seen_at")
    secret_fields = frozenset({"token"})

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("token",) if obj else ()  # written once; nobody has to read it

    def save_model(self, request: HttpRequest, obj: Device, form: ModelForm, change: bool) -> None:
        obj.token_digest = token_digest(obj.token)
        super().save_model(request, obj, form, change)
