"""Pages on which a person changes their name and email address.

A new address counts once the person has opened a link that was mailed to it. An old session alone
doesn't suffice: the page asks for the password or the second factor again. Single sign-on can't be
asked for within a session, so a person with nothing else must have logged in recently. The former
address gets a notice.
"""

import hashlib
import time
from datetime import timedelta

from allauth.account import app_settings
from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from rme.core.process import task_requests
from rme.tenants import audit
from rme.tenants.access import mail, sessions
from rme.tenants.access.limits import logins
from rme.tenants.audit import Action
from rme.tenants.models import User

TASK = "tenants.send_address_confirmation"
NOTICE_TASK = "tenants.send_address_notice"
VALID = timedelta(days=1)
_SALT = "rme.tenants.access.profile"
NO_MAIL = _(
    "This deployment sends no mail, so it can't confirm an address. Ask a superuser to change it."
)


class NameForm(forms.Form):
    """The name of a person."""

    first_name = forms.CharField(
        max_length=150,
        required=False,
        label=_("First name"),
        widget=forms.TextInput({"autocomplete": "given-name"}),
    )
    last_name = forms.CharField(
        max_length=150,
        required=False,
        label=_("Last name"),
        widget=forms.TextInput({"autocomplete": "family-name"}),
    )


class AddressForm(forms.Form):
    """The new address of a person."""

    email = forms.EmailField(
        max_length=254,
        label=_("New email address"),
        widget=forms.EmailInput({"autocomplete": "email"}),
    )


def _show(request: HttpRequest) -> HttpResponse:
    """Return the profile, or store the name."""
    user = _user(request)
    former = {name: getattr(user, name) for name in NameForm.base_fields}
    form = NameForm(request.POST if request.method == "POST" else None, initial=former)
    if form.is_valid():
        changes: audit.Values = {
            name: [former[name], form.cleaned_data[name]] for name in form.changed_data
        }
        with transaction.atomic():
            if not sessions.hold(user):
                return sessions.end(request)
            User.objects.filter(pk=user.pk).update(**form.cleaned_data)
            entries = audit.about_person(user, Action.CHANGED, changes=changes)
            audit.record(audit.actor_of(request), entries if changes else [])
        messages.success(request, gettext("Your profile is saved."))
        return redirect("profile")
    return _page(request, "profile", gettext("Your profile"), form=form)


def _change_address(request: HttpRequest) -> HttpResponse:
    """Mail a link to the new address; without mail, superusers change theirs at once."""
    user = _user(request)
    if not get_reauthentication_flows(user) and not _logged_in_recently(request):
        return sessions.end(request)
    may_change = settings.MAIL_ENABLED or user.is_superuser
    form = AddressForm(request.POST if request.method == "POST" and may_change else None)
    if form.is_valid():
        email = form.cleaned_data["email"]
        if not settings.MAIL_ENABLED:
            return _store(request, user, email)
        logins.count_request(request, "address")
        task_requests.request_with(TASK, str(user.pk), email, _token(user, email))
        messages.info(
            request,
            gettext("Open the link that we sent to %(email)s. It works for a day.")
            % {"email": email},
        )
        return redirect("profile")
    return _page(
        request,
        "address",
        gettext("Email address"),
        form=form,
        mail_enabled=settings.MAIL_ENABLED,
        problem="" if may_change else str(NO_MAIL),
    )


def _confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to use the address of a link; a POST stores it."""
    user = _user(request)
    email = _confirmed_address(user, token)
    if not email:
        return _expired(request)
    if request.method == "POST":
        return _store(request, user, email, token)
    return _page(request, "address_confirm", gettext("Email address"), email=email)


show = never_cache(admin.site.admin_view(_show))
change_address = never_cache(admin.site.admin_view(reauthentication_required(_change_address)))
confirm = never_cache(admin.site.admin_view(_confirm))


def send_confirmation(user_id: str, email: str, token: str) -> None:
    """Mail the link that confirms a new address."""
    user = User.objects.get(pk=user_id)
    url = f"{settings.BASE_URL}{reverse('address_confirm', args=[token])}{settings.LINK_QUERY}"
    mail.send(
        "address", gettext("Confirm your email address for rme"), email, {"user": user, "url": url}
    )


def send_notice(user_id: str, former: str) -> None:
    """Send a notice to the former address of a person: the account has another one."""
    user = User.objects.get(pk=user_id)
    mail.send(
        "address_notice", gettext("Your email address for rme was changed"), former, {"user": user}
    )


def _store(request: HttpRequest, user: User, email: str, token: str = "") -> HttpResponse:
    """Store the new address, with the proof by a mailed link, and record it."""
    with transaction.atomic():
        if not sessions.hold(user):
            return sessions.end(request)
        locked = User.objects.get(pk=user.pk)
        if token and not _confirmed_address(locked, token):
            return _expired(request)  # another link was used meanwhile
        former, locked.email = locked.email, email
        if token:
            locked.proven_email = email
        locked.save(update_fields=["email", "proven_email"])
        changes: audit.Values = {"email": [former, email]}
        entries = audit.about_person(locked, Action.CHANGED, changes=changes)
        audit.record(audit.actor_of(request), entries)
    if former and former != email and settings.MAIL_ENABLED:
        task_requests.request_with(NOTICE_TASK, str(user.pk), former)
    messages.success(request, gettext("Your email address is %(email)s now.") % {"email": email})
    return redirect("profile")


def _logged_in_recently(request: HttpRequest) -> bool:
    """Return whether the session began within the time for which allauth takes a proof."""
    return bool(time.time() - sessions.began(request) < app_settings.REAUTHENTICATION_TIMEOUT)


def _expired(request: HttpRequest) -> HttpResponse:
    return _page(request, "address_expired", gettext("This link doesn't work"), status=404)


def _token(user: User, email: str) -> str:
    value = {"user": user.pk, "email": email, "state": _state(user)}
    return signing.dumps(value, salt=_SALT)


def _confirmed_address(user: User, token: str) -> str:
    """Return the address of a link; empty if it is another person's, has expired or was used."""
    try:
        value = signing.loads(token, salt=_SALT, max_age=VALID)
    except signing.BadSignature:
        return ""
    is_current = value["user"] == user.pk and value["state"] == _state(user)
    return str(value["email"]) if is_current else ""


def _state(user: User) -> str:
    """Return a digest that changes with the address and the password: a link works once."""
    return hashlib.sha256(f"{user.password}\n{user.email}".encode()).hexdigest()[:32]


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # admin_view requires a logged-in user
    return request.user


def _page(
    request: HttpRequest, template: str, title: str, status: int = 200, **context: object
) -> HttpResponse:
    common = {**admin.site.each_context(request), "title": title}
    path = f"account/{template}.html"
    return render(request, path, {**common, **context}, status=status)
