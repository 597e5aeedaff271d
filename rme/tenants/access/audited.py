"""What the audit records of log-in: django-allauth and Django tell it by their signals."""

from typing import Any

from allauth.account.signals import password_reset
from allauth.core import context
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from rme.tenants import audit
from rme.tenants.access import acting
from rme.tenants.audit import Action
from rme.tenants.models import User

FACTORS = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey or security key",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}
METHODS = {
    "mfa": "second factor",
    "socialaccount": "single sign-on",
    "password_reset": "password reset",
}


def record(request: HttpRequest, user: User, action: Action, text: str = "") -> None:
    """Record what a person does with the own account, in each of its organizations."""
    audit.record(audit.actor_of(request, user), audit.about_person(user, action, text=text))


def logged_in(request: HttpRequest, user: User, methods: list[str]) -> None:
    """Record a log-in and what proved who it is."""
    names = dict.fromkeys(METHODS.get(each, each) for each in methods)
    record(request, user, Action.LOGGED_IN, ", ".join(names))


@receiver(user_logged_out)
def _logged_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None and user.is_authenticated:
        acting.end(request, "logged out")
        record(request, audit.person_behind(request), Action.LOGGED_OUT)


@receiver(mfa.authentication_failed)
def _wrong_code(request: HttpRequest, user: User, **_: Any) -> None:
    entries = audit.about_person(user, Action.LOGIN_FAILED, text="wrong code of the second factor")
    audit.record(audit.stranger(request), entries)


@receiver(mfa.authenticator_added)
@receiver(mfa.authenticator_reset)
def _factor_added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record(request, user, Action.FACTOR_ADDED, FACTORS[authenticator.type])


@receiver(mfa.authenticator_removed)
def _factor_removed(
    request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    record(request, user, Action.FACTOR_REMOVED, FACTORS[authenticator.type])


@receiver(password_reset)
def _password_reset(request: HttpRequest, user: User, **_: Any) -> None:
    record(request, user, Action.PASSWORD_RESET)


class SessionsAdapter(DefaultUserSessionsAdapter):
    """Records that a person ends its other sessions."""

    def end_sessions(self, sessions: list[UserSession]) -> None:
        super().end_sessions(sessions)
        request = context.request
        if sessions:
            record(request, request.user, Action.SESSIONS_ENDED, f"{len(sessions)} others")
