"""Our changes to django-allauth: who may log in, the client's address, and encrypted secrets."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from rme.core.db.encrypted_fields import keyring
from rme.core.http.edge import address_of
from rme.tenants.access import audited, sessions
from rme.tenants.models import User

NO_ACCOUNT = (
    "Nobody here has the email address that your provider has verified. Ask an owner of your "
    "organization for an invitation."
)


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
        messages.error(request, "This account may not log in here.")
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
        others = factors.exclude(pk=authenticator.pk)
        others = others.exclude(type=Authenticator.Type.RECOVERY_CODES)
        return others.exists() or not sessions.is_required(authenticator.user)

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

        An address that several accounts have names none of them.
        """
        if sociallogin.is_existing:
            return
        verified = [each.email for each in sociallogin.email_addresses if each.verified]
        users = list(User.objects.filter(email__iexact=verified[0])[:2]) if verified else []
        if len(users) != 1 or not users[0].is_active or not users[0].is_staff:
            messages.error(request, NO_ACCOUNT)
            raise ImmediateHttpResponse(HttpResponseRedirect(reverse("admin:login")))
        sociallogin.connect(request, users[0])
