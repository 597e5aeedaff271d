"""The people of an organization: their roles, the open invitations, and a form for a new one."""

from allauth.mfa.models import Authenticator
from django import forms
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from rme.tenants.access import invitations, roles
from rme.tenants.access.roles import Permission
from rme.tenants.models import Invitation, Membership

LISTED = 500
"""The most people and invitations on the page."""


class InviteForm(forms.Form):
    """The address and the role of a new person."""

    email = forms.EmailField(
        max_length=254,
        label=gettext_lazy("Email"),
        widget=forms.EmailInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"))

    def __init__(self, viewer: Viewer) -> None:
        super().__init__(auto_id="invite_%s", label_suffix="")
        grantable = roles.grantable(viewer.user, viewer.organization_id)
        choices = [(role, label) for role, label in Membership.Role.choices if role in grantable]
        self.fields["role"] = forms.ChoiceField(
            label=_("Role"), choices=[("", _("Choose a role")), *choices]
        )


@access.page_for(Permission.GRANT_ROLES)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the people and invitations of an organization; two statements."""
    factors = Authenticator.objects.filter(user_id=OuterRef("user_id"))
    factors = factors.exclude(type=Authenticator.Type.RECOVERY_CODES)
    members = Membership.objects.filter(organization_id=viewer.organization_id)
    waiting = invitations.waiting(viewer.organization_id)
    return access.show(
        request,
        viewer,
        "team",
        _("Team"),
        members=[
            (row, row.user.get_full_name() or row.user.get_username(), _role(row))
            for row in members.select_related("user")
            .annotate(has_factor=Exists(factors))
            .order_by("user__last_name", "user__username")[:LISTED]
        ],
        invitations=[
            (row, _role(row))
            for row in waiting.select_related("invited_by").order_by("-pk")[:LISTED]
        ],
        form=InviteForm(viewer),
    )


def _role(row: Membership | Invitation) -> str:
    """Return the name of a role, without what it may do."""
    return row.get_role_display().partition(":")[0]
