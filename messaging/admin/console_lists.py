"""Models that have pages of the console: their addresses in the admin lead there."""

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse

from messaging.console import access
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.admin.base import ReadOnly, TenantAdmin


def to_console(request: HttpRequest, page: str, permission: Permission) -> HttpResponse:
    """Redirect to a page of the console: of the organization in the query, or the latest one."""
    named = request.GET.get("organization", "").replace("\0", "")
    organization = organizations_for(request, permission).filter(pk=named).first()
    organization_id = organization.pk if organization else access.latest(request, permission)
    if organization_id is None:
        raise PermissionDenied
    return redirect(f"console:{page}", organization_id)


class ListInConsole:
    """A model page without a list of its own."""

    console_list: ClassVar[str]
    """The name of the console's page."""
    read_permission: Permission
    has_view_permission: Any

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        """Lead to the console's list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return to_console(request, self.console_list, self.read_permission)


class InConsole(ListInConsole, ReadOnly, TenantAdmin):
    """A model whose rows have pages of the console. Here are their histories, by the audit.

    Superusers see a row as it is stored, at its address with `?record`.
    """

    console_new: ClassVar[str] = ""
    """The name of the console's page that adds a row, if there is one."""
    console_page: ClassVar[str]
    """The name of the console's page of a row."""

    def console_url(self, row: Any) -> str:
        """Return the address of a row's page."""
        return reverse(f"console:{self.console_page}", args=[self.organization_of(row), row.pk])

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """Lead to the console's form."""
        if not self.console_new or not self.may(request, self.write_permission, None):
            raise PermissionDenied
        return to_console(request, self.console_new, self.write_permission)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: object = None,
    ) -> HttpResponse:
        """Lead to the row's page; so do addresses of former buttons, such as 5/versions/."""
        key = object_id.partition("/")[0]
        row = self.get_object(request, key)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if request.user.is_superuser and "record" in request.GET:
            response: HttpResponse = super().change_view(request, key, form_url, extra_context)
            return response
        return HttpResponseRedirect(self.console_url(row))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: object = None
    ) -> HttpResponse:
        """Lead to the row's page, which deletes it if anything does."""
        return self.change_view(request, object_id)
