"""Changes of a team: another role for a member, the end of an access, and of an invitation.

Each page asks first, and names the person. An organization always has an owner who can log in.
"""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.team.team_page import name_of, role_of
from rme.tenants import audit
from rme.tenants.access import invitations, roles
from rme.tenants.access.roles import Permission, Role
from rme.tenants.audit import Action
from rme.tenants.models import Membership


class OnlyOwner(Exception):
    """The change would leave an organization without an owner."""


class RoleForm(forms.Form):
    """The role of a member."""

    role = forms.ChoiceField(label=gettext_lazy("Role"))

    def __init__(self, viewer: Viewer, row: Membership, data: QueryDict | None) -> None:
        super().__init__(data, auto_id="member_%s", label_suffix="", initial={"role": row.role})
        grantable = roles.grantable(viewer.user, viewer.organization_id)
        choices = [choice for choice in Role.choices if choice[0] in grantable]
        self.fields["role"] = forms.ChoiceField(label=_("Role"), choices=choices)


@access.page_for(Permission.GRANT_ROLES)
def change_role(request: HttpRequest, viewer: Viewer, membership_id: int) -> HttpResponseBase:
    """Return the form of a member's role; a POST changes it."""
    row = _member(viewer, membership_id)
    form = RoleForm(viewer, row, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            _set_role(viewer, row, form.cleaned_data["role"])
        except OnlyOwner:
            form.add_error("role", _only_owner(row))
        else:
            done = _("%(person)s has the role %(role)s now.")
            messages.success(request, done % {"person": name_of(row), "role": role_of(row)})
            return _back(viewer, row)
    title = _("Change the role of %(person)s") % {"person": name_of(row)}
    return access.show(request, viewer, "team/role", title, form=form)


@access.page_for(Permission.GRANT_ROLES)
def remove(request: HttpRequest, viewer: Viewer, membership_id: int) -> HttpResponseBase:
    """Ask whether a member is removed from the organization; a POST removes the member."""
    row, problem = _member(viewer, membership_id), ""
    if request.method == "POST":
        try:
            _remove(viewer, row)
        except OnlyOwner:
            problem = _only_owner(row)
        else:
            messages.success(request, _("%(person)s is removed.") % {"person": name_of(row)})
            return _back(viewer, row)
    title = _("Remove %(person)s from %(organization)s?")
    names = {"person": name_of(row), "organization": viewer.organization.name}
    return access.show(
        request,
        viewer,
        "team/question",
        title % names,
        problem=problem,
        effect=_(
            "They can't open this organization any more. Applications and keys that they created "
            "keep working."
        ),
        button=_("Remove %(person)s") % names,
    )


@access.page_for(Permission.GRANT_ROLES)
def withdraw(request: HttpRequest, viewer: Viewer, invitation_id: UUID) -> HttpResponseBase:
    """Ask whether an invitation is withdrawn; a POST withdraws it."""
    row = get_object_or_404(invitations.waiting(viewer.organization_id), pk=invitation_id)
    if request.method == "POST":
        with transaction.atomic():
            audit.record(viewer.actor, audit.deletions([row], ""))
            row.delete()
        done = _("The invitation of %(email)s is withdrawn.")
        messages.success(request, done % {"email": row.email})
        return HttpResponseRedirect(reverse("console:team", args=[viewer.organization_id]))
    return access.show(
        request,
        viewer,
        "team/question",
        _("Withdraw the invitation of %(email)s?") % {"email": row.email},
        effect=_("Its link stops working."),
        button=_("Withdraw invitation"),
    )


def _member(viewer: Viewer, membership_id: int) -> Membership:
    """Return a member. Raise PermissionDenied for one who may do more than the person."""
    rows = Membership.objects.filter(organization_id=viewer.organization_id).select_related("user")
    row = get_object_or_404(rows, pk=membership_id)
    if row.role not in roles.grantable(viewer.user, viewer.organization_id):
        raise PermissionDenied
    return row


def _set_role(viewer: Viewer, row: Membership, role: str) -> None:
    """Change a member's role. Raise OnlyOwner."""
    changes = {"role": [row.role, role]}
    if row.role == role:
        return
    with transaction.atomic():
        _require_another_owner(row)
        Membership.objects.filter(pk=row.pk).update(role=role)
        row.role = role
        access.note(viewer, Action.ROLE_CHANGED, row, changes=changes)


def _remove(viewer: Viewer, row: Membership) -> None:
    """Remove a member. Raise OnlyOwner."""
    with transaction.atomic():
        _require_another_owner(row)
        audit.record(viewer.actor, audit.deletions([row], ""))
        Membership.objects.filter(pk=row.pk).delete()


def _require_another_owner(row: Membership) -> None:
    """Raise OnlyOwner if a member is the only owner who can log in; lock the owners' rows."""
    owners = Membership.objects.filter(organization_id=row.organization_id, role=Role.OWNER)
    locked = owners.filter(user__is_active=True).select_for_update(of=("self",)).order_by("pk")
    if {owner.pk for owner in locked} == {row.pk}:
        raise OnlyOwner


def _only_owner(row: Membership) -> str:
    words = _("%(person)s is the only owner. Make somebody else an owner first.")
    return words % {"person": name_of(row)}


def _back(viewer: Viewer, row: Membership) -> HttpResponseBase:
    """Lead to the team, or Home for a person who has changed their own access."""
    if row.user_id == viewer.user.pk:
        return HttpResponseRedirect(reverse("admin:index"))
    return HttpResponseRedirect(reverse("console:team", args=[viewer.organization_id]))
