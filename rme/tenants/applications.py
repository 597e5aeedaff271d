"""OAuth applications: making them, and giving them new secrets."""

import secrets
import string

from django.db import transaction
from django.db.models import F
from oauth2_provider.models import AccessToken

from rme.tenants.models import Application, Organization, User

_ALPHABET = string.ascii_letters + string.digits
# Letters and digits only: clients differ in how they encode anything else in HTTP Basic.

REVOCATION = "The application's access tokens stop working within 30 seconds: ask for new ones."
ROTATION = f"The present one stops working at once. {REVOCATION}"
"""What the admin says of it."""


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def create_application(
    organization: Organization,
    name: str,
    user: User,
    mode: str = Application.Mode.LIVE,
) -> tuple[Application, str]:
    """Make an application; gives it with its secret, which cannot be read again."""
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
    """Revoke an application's access tokens, and any that is just being issued.

    Processes that looked a token up lately believe it for `authentication.CACHE_SECONDS` more.
    """
    with transaction.atomic():
        Application.objects.filter(pk=application.pk).update(generation=F("generation") + 1)
        AccessToken.objects.filter(application_id=application.pk).delete()
