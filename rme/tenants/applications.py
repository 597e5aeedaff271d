"""OAuth applications: making them, and giving them new secrets."""

import secrets
import string

from rme.tenants.models import Application, Organization, User

_ALPHABET = string.ascii_letters + string.digits
# Letters and digits only: clients differ in how they encode anything else in HTTP Basic.


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
    """Give an application a new secret; the old one stops working at once."""
    secret = _random(48)
    application.client_secret = secret
    application.save(update_fields=["client_secret"])
    return secret
