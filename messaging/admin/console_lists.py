"""Models whose lists are pages of the console: their addresses in the admin lead there."""

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from rme.tenants.access.roles import Permission, organizations_for


def to_console(request: HttpRequest, page: str, permission: Permission) -> HttpResponse:
    """Redirect to a page of the console: of the organization in the query, or the latest one."""
    named = request.GET.get("organization", "").replace("\0", "")
    organization = organizations_for(request, permission).filter(pk=named).first()
    if organization is None:
        return redirect(f"console:first_{page}")
    return redirect(f"console:{page}", organization.pk)


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
