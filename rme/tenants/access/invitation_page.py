"""The page where invited people make a passkey or set a password, or accept with their account.

An unproven account may be another person's. So the holder of a mailed link takes it over with a new
passkey or password, and everything that opened it before is removed.
"""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.utils import is_mfa_enabled
from allauth.mfa.webauthn.internal.auth import WebAuthn, begin_registration
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from rme.tenants.access import audited, invitations, proven_addresses
from rme.tenants.access.forms import NewPasskey
from rme.tenants.models import Invitation, User

KEY = "rme_invited"
"""The key in the session of an invitation's id, and of the id that its new account will have."""


class NewPersonForm(forms.Form):
    """The name of an invited person, and either a passkey or a password."""

    first_name = forms.CharField(
        max_length=150,
        label=gettext_lazy("First name"),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "given-name"}),
    )
    last_name = forms.CharField(
        max_length=150,
        label=gettext_lazy("Last name"),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "family-name"}),
    )
    password1 = forms.CharField(
        label=gettext_lazy("Password"),
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    password2 = forms.CharField(
        label=gettext_lazy("Repeat the password"),
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    credential = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, invitation: Invitation, account: User | None, user_id: int, data: QueryDict | None
    ) -> None:
        super().__init__(data)
        self.is_new = account is None
        # the address is the user name, so that none has to be chosen
        self.user = account or User(
            pk=user_id, username=invitation.email.lower(), email=invitation.email, is_staff=True
        )
        self.passkey: dict[str, Any] | None = None

    def clean(self) -> dict[str, Any]:
        """Set the name of the account, and check the passkey or the password."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self.user.first_name = cleaned.get("first_name", "")
        self.user.last_name = cleaned.get("last_name", "")
        if self.is_new and User.objects.filter(username=self.user.username).exists():
            message = _("An account with this name exists, and it can't log in. Ask a superuser.")
            self.add_error(None, message)
        if cleaned.get("credential"):
            self._check_passkey(cleaned["credential"])
        else:
            self._check_password(cleaned.get("password1", ""), cleaned.get("password2", ""))
        return cleaned

    def _check_passkey(self, credential: str) -> None:
        """Take the browser's new passkey, whose device must have checked who its owner is."""
        form = NewPasskey({"credential": credential, "passwordless": "on"}, user=self.user)
        if form.is_valid():
            self.passkey = form.cleaned_data["credential"]
        else:
            self.add_error(None, _("The passkey wasn't stored. Make it again, or set a password."))

    def _check_password(self, password: str, repeated: str) -> None:
        if password != repeated:
            self.add_error("password2", _("The passwords differ. Enter the same one twice."))
        try:
            validate_password(password, self.user)
        except ValidationError as error:
            self.add_error("password1", error)


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
    """Let a person accept with a new passkey or a new password, which opens the account alone."""
    if request.user.is_authenticated and (account is None or request.user.pk != account.pk):
        return _page(request, invitation, another=True)
    user_id = account.pk if account else _reserved_id(request, invitation)
    form = NewPersonForm(invitation, account, user_id, request.POST or None)
    if not form.is_valid():
        options = begin_registration(form.user, passwordless=True)
        return _page(request, invitation, form=form, creation_options=options)
    authenticator = _accept(request, token, invitation, form)
    login = Login(user=form.user, redirect_url=reverse(settings.LOGIN_REDIRECT_URL))
    if authenticator:
        login.redirect_url = reverse("mfa_view_recovery_codes")
        post_authentication(request, authenticator, reauthenticated=True, passwordless=True)
    else:
        record_authentication(request, form.user, method="password", reauthenticated=True)
    response: HttpResponse = perform_login(request, login)
    return response


def _accept(
    request: HttpRequest, token: str, invitation: Invitation, form: NewPersonForm
) -> Authenticator | None:
    """Store the account and accept the invitation; return the new passkey, if it is one.

    A passkey is both factors, since its device checks its owner: the account gets no password, but
    recovery codes.
    """
    user, authenticator = form.user, None
    with transaction.atomic():
        if not form.is_new:
            proven_addresses.prove_by_link(request, user)
        elif invitation.mailed:
            user.proven_email = user.email
        user.set_password(None if form.passkey else form.cleaned_data["password1"])
        if not form.is_new:
            user.save(update_fields=["password", "first_name", "last_name"])
        invitations.accept(token, user, request)
        if form.passkey:
            authenticator = WebAuthn.add(user, _("First passkey"), form.passkey).instance
            RecoveryCodes.activate(user)
            audited.record_factors(request, user, {})
    if not form.is_new:
        logout(request)
    return authenticator


def _reserved_id(request: HttpRequest, invitation: Invitation) -> int:
    """Return the id that a new account will have: a passkey holds it before the account exists."""
    key, user_id = request.session.get(KEY, ("", 0))
    if key != str(invitation.pk):
        key, user_id = str(invitation.pk), invitations.next_user_id(invitation)
        request.session[KEY] = (key, user_id)
    return int(user_id)


def _page(
    request: HttpRequest, invitation: Invitation | None, status: int = 200, **context: object
) -> HttpResponse:
    role = invitation.get_role_display().partition(":")[0] if invitation else ""
    context = {"invitation": invitation, "role": role, **context}
    return render(request, "account/invitation.html", context, status=status)
