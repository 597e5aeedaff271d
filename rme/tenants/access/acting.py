"""Acting as another user: to see what that person sees, with a reason, for half an hour at most.

The session stays the person's own; each request gets the other user as its `user`, without the
permissions to change keys, roles and webhooks. So acting adds no permission.
"""

import time
from collections.abc import Callable
from typing import Any, cast

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminTextInputWidget

from rme.tenants import audit
from rme.tenants.access import roles
from rme.tenants.access.roles import Permission
from rme.tenants.audit import ActingRequest, Action
from rme.tenants.models import Membership, User

WITHHELD = frozenset({Permission.CHANGE_KEYS, Permission.CHANGE_WEBHOOKS, Permission.GRANT_ROLES})
"""Permissions that nobody has while acting: they grant rights, or show secrets."""
CLOSED = (
    "/admin/account/",
    "/admin/password_change/",
    "/admin/acting/begin/",
    "/push-demo",
)
"""Paths that are refused while acting: what they change is the other person's own."""
KEY = "rme_acting"
"""The key in the session of the user as whom a person acts, the reason, and the end."""
FRESH_SECONDS = 300
"""How long a proof of the second factor counts as fresh."""


def may_act_as(person: User, target: User) -> bool:
    """Return whether a person may act as another: only as one who may do nothing more.

    Superusers may act as all but superusers. Owners may as people who have roles in organizations
    alone in which the owner might grant those roles.
    """
    if person.pk == target.pk or target.is_superuser or not (target.is_active and target.is_staff):
        return False
    if not (person.is_active and person.is_staff):
        return False
    if person.is_superuser:
        return True
    rows = Membership.objects.filter(user_id=target.pk).values_list("organization_id", "role")
    memberships = list(rows)
    return bool(memberships) and all(
        role in roles.grantable(person, organization_id) for organization_id, role in memberships
    )


def is_proven(request: HttpRequest) -> bool:
    """Return whether a person has proven lately who it is, by the second factor if it has one."""
    if not is_mfa_enabled(request.user):
        return bool(did_recently_reauthenticate(request))
    since = time.time() - FRESH_SECONDS
    proofs = get_authentication_records(request, request.user)
    return any(each["method"] == "mfa" and each["at"] >= since for each in proofs)


def begin(request: HttpRequest, target: User, reason: str) -> None:
    """Let the person of a request act as another user, and record it."""
    until = int(time.time()) + settings.ACTING_SECONDS
    request.session[KEY] = {"user": target.pk, "reason": reason, "until": until}
    minutes = settings.ACTING_SECONDS // 60
    entries = audit.about_person(
        target,
        Action.ACTING_BEGUN,
        text=f"for at most {minutes} minutes",
        reason=reason,
    )
    audit.record(audit.actor_of(request), entries)


def end(request: HttpRequest, text: str = "") -> None:
    """Let the person of a request be itself again, and record it."""
    acting = request.session.pop(KEY, None)
    if acting is None:
        return
    target = User.objects.filter(pk=acting["user"]).first()
    if target is not None:
        entries = audit.about_person(target, Action.ACTING_ENDED, text=text)
        audit.record(audit.actor_of(request, audit.person_behind(request)), entries)


def enter(request: HttpRequest) -> str:
    """Set the user as whom a request's person acts; return why acting must end, or nothing."""
    acting: dict[str, Any] | None = request.session.get(KEY)
    person: Any = request.user
    if acting is None or not person.is_authenticated:
        return ""
    if time.time() >= acting["until"]:
        return gettext_noop("the time was up")
    target = User.objects.filter(pk=acting["user"]).first()
    if target is None or not may_act_as(person, target):
        return gettext_noop("it isn't allowed any more")
    roles.withhold(target, WITHHELD)
    acting_request = cast(ActingRequest, request)
    acting_request.acting_by, acting_request.acting_reason = person, acting["reason"]
    request.user = target
    return ""


# --- pages ----------------------------------------------------------------------------------------
class ActingReasonForm(forms.Form):
    """Why a person acts as another user: the banner and the audit show it."""

    reason = forms.CharField(
        max_length=300,
        label=gettext_lazy("Reason"),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )


def _begin_page(request: HttpRequest, user_id: int) -> HttpResponse:
    """Ask for a reason; a POST with one begins, after a fresh proof of who it is."""
    person = request.user
    target = User.objects.filter(pk=user_id).first()
    if target is None or not isinstance(person, User) or not may_act_as(person, target):
        raise Http404  # as for a user who does not exist
    if not is_proven(request):
        query = urlencode({"next": request.path})
        return HttpResponseRedirect(f"{reverse(_proof_page(person))}?{query}")
    form = ActingReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        begin(request, target, form.cleaned_data["reason"])
        return redirect("admin:index")
    context = {
        **admin.site.each_context(request),
        "title": _("Act as %(target)s") % {"target": target},
        "question": _(
            "You see what %(target)s sees, and what you do is recorded with both names. Keys, "
            "roles, webhooks, the password and the second factor can't be changed meanwhile."
        )
        % {"target": target},
        "form": form,
    }
    return render(request, "admin/rme/ask.html", context)


begin_page = never_cache(admin.site.admin_view(_begin_page))


def _proof_page(person: User) -> str:
    """Return the name of the page that asks for a proof of who it is."""
    if not is_mfa_enabled(person):
        return "account_reauthenticate"
    if is_mfa_enabled(person, [Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES]):
        return "mfa_reauthenticate"
    return "mfa_reauthenticate_webauthn"


@require_POST
def end_page(request: HttpRequest) -> HttpResponse:
    """Cease to act as another user."""
    end(request)
    return redirect("admin:index")


class ActingMiddleware:
    """Sets the user of requests while a person acts as another, and refuses closed pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if KEY not in request.session:
            return self.get_response(request)
        cause = enter(request)
        if cause:
            end(request, cause)
            messages.warning(
                request, _("You act as yourself again: %(cause)s.") % {"cause": _(cause)}
            )
            return redirect("admin:index")
        if hasattr(request, "acting_by") and request.path_info.startswith(CLOSED):
            raise PermissionDenied
        return self.get_response(request)
