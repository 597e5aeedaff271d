"""Shared code of the pages of programs: a person only grants rights that their role includes."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.actions import action
from rme.tenants.admin.choices import TenantForm
from rme.tenants.admin.shown_once import ShownOnce
from rme.tenants.models import User
from rme.tenants.oauth import makers


class ProgramForm(TenantForm):
    """The form of a program, which may do no more than the person who saves it."""

    user: ClassVar[User]
    """The person who fills the form in."""

    def require_rights(self, field: str, needed: frozenset[Permission]) -> None:
        """Add an error to a field for the rights that the person lacks."""
        organization = self.own_organization()
        lacking = makers.missing_rights(self.user, organization.pk, needed) if organization else []
        if lacking:
            self.add_error(
                field,
                gettext("Your role doesn't include: %(rights)s.") % {"rights": listed(lacking)},
            )


class RequestWithSecret(HttpRequest):
    """A request that has created a secret, which its response shows once."""

    new_secret: str


def listed(rights: Sequence[Permission]) -> str:
    """Return the labels of rights, separated by semicolons."""
    return "; ".join(str(each.label) for each in rights)


class ProgramAdmin(ShownOnce):
    """A page of programs. If a program has more rights than you, you can only look at it, and you
    get no secret of it.
    """

    console_list: ClassVar[str] = "programs"
    read_permission: Permission = Permission.CHANGE_KEYS
    write_permission: Permission = Permission.CHANGE_KEYS

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        """Lead to the console's page, which lists applications and keys."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect(f"console:first_{self.console_list}")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if isinstance(obj, str):  # the theme passes the id on pages of actions
            obj = self.get_object(request, obj)
        return super().has_change_permission(request, obj) and not self._missing(request, obj)

    def has_revoke_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a person may end credentials, whatever these permit."""
        return super().has_change_permission(request, obj)

    def _missing(self, request: HttpRequest, row: Any) -> list[Permission]:
        if row is None or request.user.is_superuser:
            return []
        return makers.missing_rights(
            cast(User, request.user), row.organization_id, makers.rights_of(row)
        )

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)  # a class made for this request
        form.user = request.user
        return form

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if lacking := self._missing(request, context.get("original")):
            text = gettext(
                "You can't change this. It has rights that your role doesn't include: %(rights)s."
            )
            messages.warning(request, text % {"rights": listed(lacking)})
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    @admin.display(description=_("made or confirmed by"))
    def made_by(self, row: Any) -> str:
        """Return the maker of a program, and the rights that this person has lost."""
        if row.maker is None:
            return "–"
        person = User.objects.filter(person=row.maker).first()
        name = person.get_username() if person else gettext("a deleted account")
        unbacked = makers.unbacked_programs([row.organization_id])
        lost_rights = next((each.missing for each in unbacked if each.row == row), [])
        if not lost_rights:
            return name
        return gettext(
            "%(name)s, who has lost these rights: %(rights)s. Confirm, or remove permissions."
        ) % {"name": name, "rights": listed(lost_rights)}

    @action(description=_("Confirm"), permissions=["change"])
    def confirm(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then make the person the program's maker."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            return self.ask(
                request,
                gettext("Confirm"),
                gettext("Let %(name)s keep all its permissions?") % {"name": row.name},
            )
        makers.confirm(row, cast(User, request.user))
        self.note(request, row, "confirmed", audit.Action.CHANGED)
        messages.success(request, gettext("You have confirmed %(name)s.") % {"name": row.name})
        return HttpResponseRedirect(
            reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
        )
