"""Sessions of the console: their store (`SESSION_ENGINE`), their limits, and the second factor
where it is required.
"""

import secrets
import time
from collections.abc import Callable

from allauth.mfa.utils import is_mfa_enabled
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.db import availability
from rme.core.http.api import refuse
from rme.core.http.browser import is_poll
from rme.core.http.pages import page_of
from rme.core.process import admission
from rme.tenants.models import Membership, User

CONSOLE = ("/admin/", "/push-demo")
OPEN = ("/admin/account/", "/admin/logout/", "/admin/login/", "/admin/password_change/")
"""Paths that a person without the required second factor may open, to set one up."""
BEGAN, SEEN = "rme_began", "rme_seen"
CHAIN = "rme_chain"
"""What all sessions of one log-in have in common, also those elsewhere: they end together."""
FACTOR_ELSEWHERE = "rme_factor_elsewhere"
"""In a session that was handed over from where a second factor was proven."""
SEEN_EVERY = 60
"""Seconds after which a request stores again that the session is in use."""

_has_what_it_needs: TtlCache[int, bool] = TtlCache(seconds=30)
"""The people who need no second factor, or have one."""


class SessionStore(db.SessionStore):
    """Django's store. It takes each error of the database for a session that was deleted, which is
    answered 400; an outage, or a server that is read-only, is answered 503 by its own error.
    """

    def save(self, must_create: bool = False) -> None:
        """Store the session. Raises UpdateError if it was deleted, or DatabaseError."""
        try:
            super().save(must_create)
        except UpdateError as error:
            away = error.__context__
            # "Forced update did not affect any rows" has no cause: Django raises it itself.
            if not isinstance(away, DatabaseError) or away.__cause__ is None:
                raise
            if not availability.is_unavailable(away):
                raise
            raise away from away.__cause__


def begin(request: HttpRequest) -> None:
    """Start the times of a session, at log-in."""
    request.session[BEGAN] = request.session[SEEN] = int(time.time())
    request.session[CHAIN] = secrets.token_urlsafe(16)


def continue_chain(request: HttpRequest, chain: str, began_at: int) -> None:
    """Let a session that has just begun be part of a log-in that began elsewhere."""
    request.session[CHAIN] = chain
    request.session[BEGAN] = min(began_at, int(time.time()))


def chain(request: HttpRequest) -> str:
    """Return what the session has in common with those of its log-in elsewhere."""
    return str(request.session.get(CHAIN, ""))


def end_chain(user: User, ended: str) -> int:
    """End the sessions of a person that are part of a log-in; return how many."""
    rows = UserSession.objects.filter(user=user)
    chained = [row for row in rows if ended and SessionStore(row.session_key).get(CHAIN) == ended]
    for row in chained:
        row.end()
    return len(chained)


def began(request: HttpRequest) -> int:
    """Return when the person of a session logged in, here or elsewhere."""
    return int(request.session.get(BEGAN, time.time()))


def hold(user: User) -> bool:
    """Lock a person's account until the transaction ends; return whether the session still lives.

    A session ends when the account's password changes. A request that began before must not change
    the account afterwards: it may be another person's by then (`proven_addresses.take_over`).
    """
    locked = User.objects.select_for_update().filter(pk=user.pk, is_active=True).first()
    return locked is not None and locked.password == user.password


def is_required(user: User) -> bool:
    """Return whether the deployment or an organization of a person requires a second factor."""
    if user.is_superuser and settings.SUPERUSER_FACTOR_REQUIRED:
        return True
    rows = Membership.objects.filter(user_id=user.pk, organization__second_factor_required=True)
    return bool(settings.SECOND_FACTOR_REQUIRED or rows.exists())


def end(request: HttpRequest) -> HttpResponse:
    """Log the person of a request out, and lead it to the log-in page, then back to its page."""
    logout(request)
    messages.info(request, _("Your session has ended. Log in again."))
    return _to_log_in(page_of(request))


def _to_log_in(page: str) -> HttpResponse:
    query = urlencode({"next": page} if page else {})
    return HttpResponseRedirect(f"{reverse('admin:login')}?{query}")


class SessionMiddleware:
    """Ends sessions that are too old, and leads people to a second factor that they need."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(CONSOLE):
            return self.get_response(request)
        if SESSION_KEY not in request.session:
            has_form = request.method == "POST" and not request.path_info.startswith(OPEN)
            page = page_of(request) if has_form else ""
            return _to_log_in(page) if page else self.get_response(request)
        try:
            admission.claim_person(request.META, str(request.session[SESSION_KEY]))
        except errors.RateLimited as error:
            return refuse(request, error)
        if self._is_over(request):
            return end(request)
        if self._lacks_factor(request):
            messages.warning(request, _("You need a second factor here. Set one up first."))
            return HttpResponseRedirect(reverse("mfa_activate_totp"))
        return self.get_response(request)

    def _is_over(self, request: HttpRequest) -> bool:
        """Return whether a session is too old or was idle for too long; store that it is used."""
        session, now = request.session, int(time.time())
        began, seen = session.get(BEGAN, now), session.get(SEEN, now)
        if now - began >= settings.SESSION_SECONDS or now - seen >= settings.SESSION_IDLE_SECONDS:
            return True
        if BEGAN not in session:  # begun by a release before; a poll starts its times, too
            session[BEGAN] = session[SEEN] = now
        elif now - seen >= SEEN_EVERY and not is_poll(request):
            session[SEEN] = now
        return False

    def _lacks_factor(self, request: HttpRequest) -> bool:
        user = request.user
        if request.path_info.startswith(OPEN) or not user.is_authenticated:
            return False
        if request.session.get(FACTOR_ELSEWHERE):
            return False

        def load() -> bool | None:
            return True if not is_required(user) or is_mfa_enabled(user) else None

        return not _has_what_it_needs.get(user.pk, load)
