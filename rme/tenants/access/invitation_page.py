"""The page where invited people set a password, or accept with their account.

An unproven account may be another person's. So the holder of a mailed link takes it over with a new
password, and everything that opened it before is removed.
"""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from rme.tenants.access import invitations, proven_addresses
from rme.tenants.models import Invitation, User


class NewPersonForm(forms.Form):
    """The name and password of a new person."""

    first_name = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    last_name = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    password1 = forms.CharField(
        label="Password",
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    password2 = forms.CharField(
        label="The password again",
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )

    def __init__(
        self, invitation: Invitation, account: User | None, data: QueryDict | None
    ) -> None:
        super().__init__(data)
        self.is_new = account is None
        # the address is the user name, so that none has to be chosen
        self.user = account or User(
            username=invitation.email.lower(), email=invitation.email, is_staff=True
        )

    def clean(self) -> dict[str, Any]:
        """Check the password against the rules, and against what was typed again."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.user.first_name = cleaned.get("first_name", "")
        self.user.last_name = cleaned.get("last_name", "")
        password = cleaned.get("password1", "")
        if password and password != cleaned.get("password2"):
            self.add_error("password2", "This is not the same password.")
        try:
            validate_password(password, self.user)
        except ValidationError as error:
            self.add_error("password1", error)
        if self.is_new and User.objects.filter(username=self.user.username).exists():
            self.add_error(None, "An account with this name exists, which may not log in.")
        return cleaned


@never_cache
def accept(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation and accept it; 404 for one that is not valid any more."""
    try:
        invitation = invitations.find(token)
        account = invitations.account_of(invitation)
        if account is None:
            return _with_new_password(request, token, invitation, None)
        if invitation.mailed and not proven_addresses.is_proven(account):
            return _with_unproven_account(request, token, invitation, account)
        return _with_account(request, token, invitation, account)
    except (invitations.NotValid, IntegrityError):
        return _page(request, None, status=404)


def _with_account(
    request: HttpRequest, token: str, invitation: Invitation, account: User
) -> HttpResponse:
    if request.user.pk != account.pk:
        return _log_in_first(request, invitation)
    if request.method == "POST":
        invitations.accept(token, account, request)
        return redirect("admin:index")
    return _page(request, invitation, account=account)


def _with_unproven_account(
    request: HttpRequest, token: str, invitation: Invitation, account: User
) -> HttpResponse:
    """Let the mailbox's holder have the account, who must pass its second factor if it has one."""
    if is_mfa_enabled(account):
        if request.user.pk != account.pk:
            return _log_in_first(request, invitation)
        proofs = get_authentication_records(request, account)
        if not any(each["method"] == "mfa" for each in proofs):
            query = urlencode({"next": request.path})
            return HttpResponseRedirect(f"{reverse('mfa_reauthenticate')}?{query}")
    return _with_new_password(request, token, invitation, account)


def _log_in_first(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    if request.user.is_authenticated:
        return _page(request, invitation, another=True)
    query = urlencode({"next": request.path})
    return HttpResponseRedirect(f"{reverse('admin:login')}?{query}")


def _with_new_password(
    request: HttpRequest, token: str, invitation: Invitation, account: User | None
) -> HttpResponse:
    if request.user.is_authenticated and (account is None or request.user.pk != account.pk):
        return _page(request, invitation, another=True)
    form = NewPersonForm(invitation, account, request.POST or None)
    if not form.is_valid():
        return _page(request, invitation, form=form)
    user = form.user
    with transaction.atomic():
        if not form.is_new:
            proven_addresses.prove_by_link(request, user)
        elif invitation.mailed:
            user.proven_email = user.email
        user.set_password(form.cleaned_data["password1"])
        if not form.is_new:
            user.save(update_fields=["password", "first_name", "last_name"])
        invitations.accept(token, user, request)
    if not form.is_new:
        logout(request)
    record_authentication(request, user, method="password", reauthenticated=True)
    response: HttpResponse = perform_login(
        request, Login(user=user, redirect_url=reverse(settings.LOGIN_REDIRECT_URL))
    )
    return response


def _page(
    request: HttpRequest, invitation: Invitation | None, status: int = 200, **context: object
) -> HttpResponse:
    context = {"invitation": invitation, **context}
    return render(request, "account/invitation.html", context, status=status)
