"""The page where an invited person sets a password, or accepts with the account it has."""

from typing import Any

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django import forms
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from rme.tenants.access import invitations
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

    def __init__(self, invitation: Invitation, *args: object) -> None:
        super().__init__(*args)
        # the address is the user name, so that none has to be chosen
        self.user = User(username=invitation.email.lower(), email=invitation.email, is_staff=True)

    def clean(self) -> dict[str, Any]:
        """Check the password against the rules, and against what was typed again."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        self.user.first_name = given.get("first_name", "")
        self.user.last_name = given.get("last_name", "")
        password = given.get("password1", "")
        if password and password != given.get("password2"):
            self.add_error("password2", "This is not the same password.")
        try:
            validate_password(password, self.user)
        except ValidationError as error:
            self.add_error("password1", error)
        if User.objects.filter(username=self.user.username).exists():
            self.add_error(None, "An account with this name exists, which may not log in.")
        return given


@never_cache
def accept(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation and accept it; 404 for one that is not valid any more."""
    try:
        invitation = invitations.find(token)
        account = invitations.account_of(invitation)
        if account is not None:
            return _with_account(request, token, invitation, account)
        return _new_person(request, token, invitation)
    except (invitations.NotValid, IntegrityError):
        return _page(request, None, status=404)


def _with_account(
    request: HttpRequest, token: str, invitation: Invitation, account: User
) -> HttpResponse:
    if request.user.pk != account.pk:
        if request.user.is_authenticated:
            return _page(request, invitation, account=account, another=True)
        query = urlencode({"next": request.path})
        return HttpResponseRedirect(f"{reverse('admin:login')}?{query}")
    if request.method == "POST":
        invitations.accept(token, account, request)
        return redirect("admin:index")
    return _page(request, invitation, account=account)


def _new_person(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    if request.user.is_authenticated:
        return _page(request, invitation, another=True)
    form = NewPersonForm(invitation, request.POST or None)
    if not form.is_valid():
        return _page(request, invitation, form=form)
    user = form.user
    user.set_password(form.cleaned_data["password1"])
    invitations.accept(token, user, request)
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
