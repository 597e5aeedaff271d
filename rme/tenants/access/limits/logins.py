"""Rate limits of failed logins, applied before a password is hashed: a hash takes 0.3 s of CPU.

Three counters, each for several periods, so that waits grow from a minute to half an hour:

- an account from one address, which other addresses cannot use up;
- an address, for all accounts together;
- an account, from all addresses together. An address from which a login to the account succeeded
  in the last month has only the first limit, so that strangers cannot lock out a user.

Accounts that do not exist are counted like existing ones. While Redis is away, PostgreSQL counts
(`guess_limits`), and no address counts as known.
"""

import hashlib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

import structlog
from allauth.core.internal.cryptokit import normalize_user_code
from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_noop

from rme.core.db import clock
from rme.core.http.edge import address_of
from rme.core.redis.rate_limits import Limit, Script, limiter
from rme.tenants import audit
from rme.tenants.access import sessions
from rme.tenants.access.limits import guess_limits, single_use
from rme.tenants.audit import Action
from rme.tenants.models import User

log = structlog.get_logger(__name__)

KNOWN_SECONDS = 30 * 86_400
"""How long the address of a successful login is remembered."""

CODE_SECONDS = 300
"""How long a used code is remembered: longer than apps show it, plus the tolerance of clocks."""

LOCK_OUT_SECONDS = 300
"""A lock-out is recorded once in this many seconds, however many attempts it refuses."""
LOCKED_OUT = {
    "pair": "too many attempts from one address",
    "address": "too many attempts from one address at several accounts",
    "account": "too many attempts from several addresses",
}
CODE_TEXT = gettext_noop("Too many wrong codes. Wait some minutes, and try again.")
MAIL_TEXT = gettext_noop("Too many requests. Wait some minutes, and try again.")

_IS_KNOWN = Script("return {redis.call('EXISTS', KEYS[1])}")
_REMEMBER = Script("redis.call('SET', KEYS[1], 1, 'EX', ARGV[1]) return {}")


class LoginAttempt:
    """One attempt to log in by password."""

    def __init__(self, request: HttpRequest | None, username: str) -> None:
        self.place = _network(address_of(request)) if request else ""
        name = unicodedata.normalize("NFKC", username)
        self.request, self.name = request, name
        # A digest, since people may type a password here by mistake.
        self.account = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]
        self.pair = f"{self.place}:{self.account}"

    def begin(self) -> None:
        """Count the attempt as a failure. Raise RateLimited with the time to wait."""
        # The narrowest limit first: an attempt that it refuses does not count for the others.
        self._take(f"login:pair:{self.pair}", _pair_limits())
        if not self._is_known():
            self._take(f"login:address:{self.place}", _address_limits())
            self._take(f"login:account:{self.account}", _account_limits())

    def succeed(self) -> None:
        """Reset the account's failures, and remember the address.

        Failures of other accounts from the address stay counted: a valid login must not pay for
        attempts on other accounts.
        """
        guess_limits.reset(f"login:pair:{self.pair}", *_pair_limits())
        guess_limits.reset(f"login:account:{self.account}", *_account_limits())
        if not self._is_known():
            guess_limits.give_back(f"login:address:{self.place}", *_address_limits())
        limiter.run(_REMEMBER, [self._known_key], KNOWN_SECONDS)

    def _take(self, key: str, limits: tuple[Limit, ...]) -> None:
        decision = guess_limits.take(key, *limits)
        if not decision.allowed:
            kind = key.split(":")[1]
            log.warning("login.limited", kind=kind, retry_after=decision.retry_after)
            if guess_limits.take(f"{key}:recorded", Limit(1, LOCK_OUT_SECONDS)).allowed:
                self.record(Action.LOCKED_OUT, LOCKED_OUT[kind])
            decision.require(_wait_text(decision.retry_after))

    def record(self, action: Action, text: str) -> None:
        """Record the attempt's result, by the same statements for any account."""
        entries = audit.about_account(self.name, action, text)
        audit.record(audit.stranger(self.request), entries)

    @property
    def _known_key(self) -> str:
        return f"rme:login:known:{self.pair}"

    def _is_known(self) -> bool:
        return limiter.run(_IS_KNOWN, [self._known_key]) == [1]


def change_password(request: HttpRequest) -> HttpResponse:
    """Render Django's page for a new password; a wrong old password counts as a failed login."""
    if request.method != "POST":
        return admin.site.password_change(request)
    assert isinstance(request.user, User)  # admin_view requires a logged-in user
    attempt = LoginAttempt(request, request.user.get_username())
    attempt.begin()
    with transaction.atomic():
        if not sessions.hold(request.user):
            return sessions.end(request)
        response = admin.site.password_change(request)
        if response.status_code == 302:
            attempt.succeed()
            entries = audit.about_person(request.user, Action.PASSWORD_CHANGED)
            audit.record(audit.actor_of(request), entries)
    return response


def _network(address: str) -> str:
    """Return the network of one caller: an IPv4 address, or a /64 of IPv6 addresses."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return str(ip)


def _pair_limits() -> tuple[Limit, ...]:
    n = settings.LOGIN_FAILURES
    return Limit(n, 300), Limit(4 * n, 10_800), Limit(10 * n, 86_400)


def _address_limits() -> tuple[Limit, ...]:
    n = settings.LOGIN_FAILURES
    return Limit(n, 300), Limit(10 * n, 10_800), Limit(20 * n, 86_400)


def _account_limits() -> tuple[Limit, ...]:
    n = settings.LOGIN_FAILURES
    return Limit(10 * n, 3600), Limit(40 * n, 86_400)


def _wait_text(seconds: int) -> str:
    """Return the time to wait as a text that reveals nothing about the account."""
    span = f"{seconds} seconds" if seconds <= 90 else f"{-(-seconds // 60)} minutes"
    return gettext("Too many attempts to log in. Wait %(span)s, and try again.") % {"span": span}


@contextmanager
def counted_code(user_id: int) -> Iterator[None]:
    """Count a code of a second factor as wrong unless the block ends. Raise RateLimited.

    Only who knows the password gets here, so the limit is the account's, from all addresses.
    """
    limits = _pair_limits()
    key = f"login:code:{user_id}"
    guess_limits.take(key, *limits).require(gettext(CODE_TEXT))
    yield
    guess_limits.reset(key, *limits)


def count_request(request: HttpRequest, kind: str) -> None:
    """Count a request for an email from an address. Raise RateLimited."""
    place = _network(address_of(request))
    guess_limits.take(f"login:{kind}:{place}", *_address_limits()).require(gettext(MAIL_TEXT))


def is_first_use(user_id: int, code: str) -> bool:
    """Return whether a code of an app is used for the first time, in any process.

    Only the digits count: spaces and dashes make no other code. PostgreSQL remembers the code for
    longer than it is valid, whether Redis is there or not.
    """
    text = f"second factor {user_id}\n{normalize_user_code(code)}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return single_use.store_once(digest, clock.now() + timedelta(seconds=CODE_SECONDS))


def is_first_answer(challenge: str) -> bool:
    """Return whether a passkey's challenge is answered for the first time, in any process.

    PostgreSQL remembers it for as long as a session can hold it.
    """
    digest = hashlib.sha256(f"passkey challenge\n{challenge}".encode()).hexdigest()
    until = clock.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    return single_use.store_once(digest, until)
