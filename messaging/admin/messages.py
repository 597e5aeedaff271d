"""Addresses of messages in the admin, which lead to their pages in the console."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from messaging.admin.console_lists import ListInConsole
from messaging.models import Message
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import ReadOnly, TenantAdmin


@admin.register(Message)
class MessageAdmin(ListInConsole, ReadOnly, TenantAdmin):
    """The history of a message, by the audit, is the only page here."""

    read_permission: Permission = Permission.SEE_MESSAGES
    write_permission: Permission = Permission.OPERATE
    console_list = "messages"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: object = None,
    ) -> HttpResponse:
        """Lead to the message's page."""
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return redirect("console:message", row.organization_id, row.pk)
