"""Create OAuth applications, rotate their secrets and revoke their tokens."""

import secrets
import string

from django.db import transaction
from django.db.models import F
from oauth2_provider.models import AccessToken

from rme.tenants.models import Application, Organization, User

# Letters and digits only: clients differ in how they encode other characters in HTTP Basic.
_ALPHABET = string.ascii_letters + string.digits

REVOCATION = "The application's access tokens stop working within 30 seconds: ask for new ones."
ROTATION = f"The present one stops working at once. {REVOCATION}"
"""Texts of the admin."""


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def create_application(
    organization: Organization,
    name: str,
    user: User,
    mode: str = Application.Mode.LIVE,
) -> tuple[Application, str]:
    """Create an application; return it with its secret, which is not stored."""
    secret = _random(48)
    application = Application.objects.create(
        organization=organization,
        name=name,
        user=user,
        mode=mode,
        client_id=_random(32),
        client_secret=secret,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )
    return application, secret


def rotate_secret(application: Application) -> str:
    """Set a new secret and return it; the old one, and all access tokens, stop working at once."""
    secret = _random(48)
    application.client_secret = secret
    with transaction.atomic():
        application.save(update_fields=["client_secret"])
        revoke_tokens(application)
    return secret


def revoke_tokens(application: Application) -> None:
    """Revoke an application's access tokens, including any that is being issued.

    Processes that have a token in their cache accept it for up to `authentication.CACHE_SECONDS`.
    """
    with transaction.atomic():
        Application.objects.filter(pk=application.pk).update(generation=F("generation") + 1)
        AccessToken.objects.filter(application_id=application.pk).delete()
