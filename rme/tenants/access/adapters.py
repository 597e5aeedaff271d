"""Our changes to django-allauth: who may log in, the client's address, and encrypted secrets."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core.db.encrypted_fields import keyring
from rme.core.db.reencryption import Count
from rme.core.http.edge import address_of
from rme.tenants.access import audited, proven_addresses, sessions
from rme.tenants.models import User

REMOVED = _(
    "Your provider has confirmed your address for the first time. We removed this account's old "
    "password and second factors. Set up new ones under Your account."
)
NO_ACCOUNT = _(
    "Nobody here has the email address that your provider has verified. Ask an owner of your "
    "organization for an invitation."
)

FACTOR_SECRETS = ("secret", "seed")
"""The encrypted values: a TOTP key, and the seed of recovery codes."""


class AccountAdapter(DefaultAccountAdapter):
    """There is no sign-up; only staff logs in."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Refuse users of programs, by whatever factor they logged in."""
        if not user.is_staff:
            return self.respond_user_inactive(request, user)
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return response

    def respond_user_inactive(self, request: HttpRequest, user: object) -> HttpResponse:
        messages.error(request, gettext("This account may not log in here."))
        return HttpResponseRedirect(reverse("admin:login"))

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        sessions.begin(request)
        proofs = get_authentication_records(request, user)
        audited.logged_in(request, user, [each["method"] for each in proofs])

    def get_client_ip(self, request: HttpRequest) -> str:
        return address_of(request)


class MfaAdapter(DefaultMFAAdapter):
    """Secrets of second factors are encrypted at rest, by FIELD_KEYS."""

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        """Refuse to remove the last second factor of a person who needs one."""
        factors = Authenticator.objects.filter(user_id=authenticator.user_id)
        remaining = factors.exclude(pk=authenticator.pk)
        remaining = remaining.exclude(type=Authenticator.Type.RECOVERY_CODES)
        return remaining.exists() or not sessions.is_required(authenticator.user)

    def encrypt(self, text: str) -> str:
        return keyring().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return keyring().decrypt(encrypted_text.encode()).decode()


class SocialAdapter(DefaultSocialAccountAdapter):
    """Single sign-on is for people who have an account here already."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Find the account by the address that the provider has verified. Raise the way back.

        If several accounts share the address, it identifies none of them. An unproven account may
        have been another person's until now, so everything that opened it before is removed.
        """
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login")))
        verified = _verified_address(sociallogin)
        with transaction.atomic():
            if not sociallogin.is_existing:
                found = self._account_with(request, verified)
                sociallogin.lookup()  # the same person's sign-on may have connected it meanwhile
                if not sociallogin.is_existing:
                    self._prove(request, found)
                    sociallogin.connect(request, found)
                    return
            user = User.objects.select_for_update().get(pk=sociallogin.user.pk)
            sociallogin.user = user  # as it is under the lock: the session holds its password
            if verified and proven_addresses.is_same(user.email, verified):
                self._prove(request, user, keep_sign_on=sociallogin.account.pk)

    @staticmethod
    def _account_with(request: HttpRequest, address: str) -> User:
        """Lock and return the one account with an address. Raise the way back."""
        users = proven_addresses.with_address(address) if address else []
        if len(users) != 1 or not users[0].is_active or not users[0].is_staff:
            messages.error(request, NO_ACCOUNT)
            raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login")))
        return User.objects.select_for_update().get(pk=users[0].pk)

    @staticmethod
    def _prove(request: HttpRequest, user: User, keep_sign_on: int = 0) -> None:
        if proven_addresses.is_proven(user) or not (user.is_active and user.is_staff):
            return
        how = "the address was proven by single sign-on"
        proven_addresses.take_over(request, user, how, keep_sign_on=keep_sign_on)
        messages.info(request, REMOVED)


def _verified_address(sociallogin: SocialLogin) -> str:
    """Return the address that the provider has verified, as it wrote it; empty: there is none.

    allauth has it in lower case, in which `K` (the sign of Kelvin) is `k`, and takes any text, also
    `"false"`, for true. Some providers send the text `"true"`.
    """
    if not sociallogin.email_addresses:
        return ""  # it isn't an address
    data = sociallogin.account.extra_data
    claims = data.get("userinfo") or data.get("id_token") or {}
    return str(claims["email"]) if claims.get("email_verified") in (True, "true") else ""


def reencrypt_factors(*, change: bool = True) -> Count:
    """Encrypt second factors with the first of FIELD_KEYS; return how many had which key."""
    first = Fernet(settings.FIELD_KEYS[0])
    count = Count("mfa.Authenticator.data")
    for row in Authenticator.objects.order_by("pk").iterator(chunk_size=100):
        for name in FACTOR_SECRETS:
            if name not in row.data:
                continue
            try:
                first.decrypt(row.data[name].encode())
                count.current += 1
                continue
            except InvalidToken:
                pass  # encrypted with another key, perhaps
            try:
                new = keyring().rotate(row.data[name].encode()).decode()
            except InvalidToken:
                count.unreadable.append(row.pk)
                continue
            count.old += 1
            if change:
                # of the row as it was read: a code used meanwhile stays used
                unchanged_row = Authenticator.objects.filter(pk=row.pk, data=row.data)
                row.data = {**row.data, name: new}
                unchanged_row.update(data=row.data)
    return count
