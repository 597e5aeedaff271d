"""The people of an organization: their roles, the open invitations, and a form for a new one."""

from typing import Any

from allauth.mfa.models import Authenticator
from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import access
from messaging.console.access import Viewer
from rme.core.db import locks
from rme.tenants import audit
from rme.tenants.access import invitations, roles
from rme.tenants.access.roles import Permission
from rme.tenants.admin import shown_once
from rme.tenants.audit import Action
from rme.tenants.models import Invitation, Membership, User

LISTED = 500
"""The most people and invitations on the page."""


class InviteForm(forms.Form):
    """The address and the role of a new person."""

    email = forms.EmailField(
        max_length=User._meta.get_field("username").max_length,  # it becomes the user name
        label=gettext_lazy("Email"),
        widget=forms.EmailInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"))

    def __init__(self, viewer: Viewer, data: QueryDict | None) -> None:
        super().__init__(data, auto_id="invite_%s", label_suffix="")
        self.organization_id = viewer.organization_id
        grantable = roles.grantable(viewer.user, viewer.organization_id)
        choices = [(role, label) for role, label in Membership.Role.choices if role in grantable]
        self.fields["role"] = forms.ChoiceField(
            label=_("Role"), choices=[("", _("Choose a role")), *choices]
        )

    def clean_email(self) -> str:
        """Return the address of a person without a role or an open invitation."""
        email: str = self.cleaned_data["email"]
        if problem := invitations.problem(self.organization_id, email):
            raise forms.ValidationError(problem)
        return email


@access.page_for(Permission.GRANT_ROLES)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the people and invitations of an organization, by two statements; a POST invites."""
    form = InviteForm(viewer, request.POST if request.method == "POST" else None)
    if form.is_valid():
        return _invite(request, viewer, form)
    factors = Authenticator.objects.filter(user_id=OuterRef("user_id"))
    factors = factors.exclude(type=Authenticator.Type.RECOVERY_CODES)
    elsewhere = Membership.objects.filter(user_id=OuterRef("user_id")).exclude(
        organization_id__in=roles.organizations_of(request, Permission.GRANT_ROLES)
    )
    members = Membership.objects.filter(organization_id=viewer.organization_id)
    waiting = invitations.waiting(viewer.organization_id)
    grantable = roles.grantable(viewer.user, viewer.organization_id)
    return access.show(
        request,
        viewer,
        "team/team",
        _("Team"),
        members=[
            (row, name_of(row), role_of(row), row.role in grantable, _may_act_as(viewer, row))
            for row in members.select_related("user")
            .annotate(has_factor=Exists(factors), is_elsewhere=Exists(elsewhere))
            .order_by("user__last_name", "user__username")[:LISTED]
        ],
        invitations=[
            (row, role_of(row))
            for row in waiting.select_related("invited_by").order_by("-pk")[:LISTED]
        ],
        form=form,
        is_inviting=form.is_bound or "invite" in request.GET,
    )


def _invite(request: HttpRequest, viewer: Viewer, form: InviteForm) -> HttpResponseBase:
    """Create an invitation; without mail, lead to the page that shows its link once."""
    row = Invitation(
        organization_id=viewer.organization_id, invited_by=viewer.user, **form.cleaned_data
    )
    with transaction.atomic():
        locks.until_commit([f"invitation {row.organization_id} {row.email.lower()}"])
        if problem := invitations.problem(row.organization_id, row.email):
            messages.error(request, problem)
            return HttpResponseRedirect(request.path)
        link = invitations.create(row)
        access.note(viewer, Action.INVITED, row, changes=audit.of_form(form, ()))
    if settings.MAIL_ENABLED:
        done = _("An email with the invitation goes to %(email)s.")
        messages.success(request, done % {"email": row.email})
        return HttpResponseRedirect(request.path)
    url = reverse("admin:tenants_invitation_secret", args=[row.pk])
    label = _("Link, as this deployment sends no mail")
    return shown_once.redirect(request, url, row, (label, link))


def _may_act_as(viewer: Viewer, row: Any) -> bool:
    """Return what `acting.may_act_as` says, without a query: `is_elsewhere` is part of the row."""
    user = row.user
    is_other = user.pk != viewer.user.pk and not user.is_superuser
    is_known = viewer.user.is_superuser or not row.is_elsewhere
    return bool(is_other and is_known and user.is_active and user.is_staff)


def name_of(row: Membership) -> str:
    """Return the name of a member."""
    return row.user.get_full_name() or row.user.get_username()


def role_of(row: Membership | Invitation) -> str:
    """Return the name of a role, without what it may do."""
    return row.get_role_display().partition(":")[0]
