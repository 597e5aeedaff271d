"""The pages on which a person begins and ceases to act as another user."""

from collections.abc import Callable

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminTextInputWidget

from rme.tenants.access import acting
from rme.tenants.models import User


class ActingReasonForm(forms.Form):
    """Why a person acts as another user: the banner and the audit show it."""

    reason = forms.CharField(
        max_length=300,
        label="Why?",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )


def _begin(request: HttpRequest, user_id: int) -> HttpResponse:
    """Ask for a reason; a POST with one begins, after a fresh proof of who it is."""
    person = request.user
    other = User.objects.filter(pk=user_id).first()
    if other is None or not isinstance(person, User) or not acting.may_act_as(person, other):
        raise Http404  # as for a user who does not exist
    if not acting.is_proven(request):
        query = urlencode({"next": request.path})
        return HttpResponseRedirect(f"{reverse(_proof_page(person))}?{query}")
    form = ActingReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        acting.begin(request, other, form.cleaned_data["reason"])
        return redirect("admin:index")
    context = {
        **admin.site.each_context(request),
        "title": f"Act as {other}",
        "question": f"You see what {other} sees, and what you do is recorded with both names. "
        "Keys, roles, webhooks, the password and the second factor cannot be changed meanwhile.",
        "form": form,
    }
    return render(request, "admin/rme/ask.html", context)


begin = never_cache(admin.site.admin_view(_begin))


def _proof_page(person: User) -> str:
    """Return the name of the page that asks for a proof of who it is."""
    if not is_mfa_enabled(person):
        return "account_reauthenticate"
    if is_mfa_enabled(person, [Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES]):
        return "mfa_reauthenticate"
    return "mfa_reauthenticate_webauthn"


@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """Cease to act as another user."""
    acting.end(request)
    return redirect("admin:index")


class ActingMiddleware:
    """Sets the user of requests while a person acts as another, and refuses closed pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if acting.KEY not in request.session:
            return self.get_response(request)
        why = acting.enter(request)
        if why:
            acting.end(request, why)
            messages.warning(request, f"You act as yourself again: {why}.")
            return redirect("admin:index")
        if hasattr(request, "acting_by") and request.path_info.startswith(acting.CLOSED):
            raise PermissionDenied
        return self.get_response(request)
