"""What the audit records of log-in and of second factors.

Log-ins come by the signals of django-allauth and Django. Changes of second factors do not: their
signals are sent after the commit, so a process that ends there would leave no entry.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.signals import password_reset
from allauth.core import context
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from rme.tenants import audit
from rme.tenants.access import acting, proven_addresses, sessions
from rme.tenants.audit import Action
from rme.tenants.models import User

FACTORS: dict[str, str] = {
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
        person = audit.person_behind(request)
        record(request, person, Action.LOGGED_OUT)


@receiver(mfa.authentication_failed)
def _wrong_code(request: HttpRequest, user: User, **_: Any) -> None:
    entries = audit.about_person(user, Action.LOGIN_FAILED, text="wrong code of the second factor")
    audit.record(audit.stranger(request), entries)


def of_factors(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that changes second factors and records it, both in one transaction."""

    @wraps(view)
    def change(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        user = request.user
        if request.method != "POST" or not isinstance(user, User):
            return view(request, *args, **kwargs)
        with transaction.atomic():
            # One change after the other: each compares the old rights with the new ones.
            if not sessions.hold(user):
                return sessions.end(request)
            old_factors = _factors(user)
            response = view(request, *args, **kwargs)
            record_factors(request, user, old_factors)
        return response

    return change


def _factors(user: User) -> dict[int, str]:
    """Return the types of a person's second factors by their id, in the order they were added."""
    rows = Authenticator.objects.filter(user_id=user.pk).order_by("pk")
    return dict(rows.values_list("pk", "type"))


def record_factors(request: HttpRequest, user: User, old_factors: dict[int, str]) -> None:
    """Record how a person's second factors differ from those of before."""
    new_factors = _factors(user)
    added = [kind for key, kind in new_factors.items() if key not in old_factors]
    # New recovery codes replace the former ones: nothing is removed for good.
    removed = [
        kind for key, kind in old_factors.items() if key not in new_factors and kind not in added
    ]
    for action, kinds in ((Action.FACTOR_ADDED, added), (Action.FACTOR_REMOVED, removed)):
        for kind in kinds:
            record(request, user, action, FACTORS[kind])


@receiver(password_reset)
def _password_reset(request: HttpRequest, user: User, **_: Any) -> None:
    record(request, user, Action.PASSWORD_RESET)
    proven_addresses.prove_by_reset(request, user)


class SessionsAdapter(DefaultUserSessionsAdapter):
    """Records that a person ends its other sessions."""

    def end_sessions(self, sessions: list[UserSession]) -> None:
        super().end_sessions(sessions)
        request = context.request
        if sessions:
            record(request, request.user, Action.SESSIONS_ENDED, f"{len(sessions)} others")
