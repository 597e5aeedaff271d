"""Emails of access, by Django's mail (SMTP_URL)."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from rme.tenants.models import User

ACCOUNTS = 5
"""At most this many accounts of an address get a link."""


def send_password_resets(email: str) -> int:
    """Send a link to each account with the address that may log in; return their number."""
    users = User.objects.filter(email__iexact=email, is_active=True, is_staff=True)
    recipients = [user for user in users.order_by("pk")[:ACCOUNTS] if _may_have_password(user)]
    for user in recipients:
        key = default_token_generator.make_token(user)
        path = reverse("account_reset_password_from_key", args=[user_pk_to_url_str(user), key])
        context = {"user": user, "url": f"{settings.BASE_URL}{path}{settings.LINK_QUERY}"}
        # to the stored address: another spelling of it may be another person's
        send("reset", _("A new password for rme"), user.email, context)
    return len(recipients)


def _may_have_password(user: User) -> bool:
    """Return whether a person logs in here: by password, or by passkey without single sign-on.

    Who has lost a passkey needs a recovery code besides the new password.
    """
    if user.has_usable_password():
        return True
    passkeys = Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.WEBAUTHN)
    return passkeys.exists() and not SocialAccount.objects.filter(user_id=user.pk).exists()


def send(template: str, subject: str, to: str, context: dict[str, object]) -> None:
    """Send an email rendered from a template."""
    text = render_to_string(f"email/{template}.txt", {**context, "base_url": settings.BASE_URL})
    send_mail(subject, text, None, [to])
