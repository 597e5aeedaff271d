"""Create OAuth applications, rotate their secrets and revoke their tokens.

A replaced secret may be accepted for some time beside the new one. Tokens that were issued before,
or by it, end with it at the latest.
"""

import itertools
import secrets
import string
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least, Now
from django.utils.text import slugify
from oauth2_provider.models import AccessToken

from rme.core.db import clock, locks
from rme.tenants.models import INTEGRATION_GROUP, Application, Organization, User
from rme.tenants.oauth.permissions import ALL_PERMISSIONS, EVERYTHING, Grants

# Letters and digits only: clients differ in how they encode other characters in HTTP Basic.
_ALPHABET = string.ascii_letters + string.digits

REVOCATION = "The application's access tokens stop working within 30 seconds: ask for new ones."
"""A text of the admin."""
AT_ONCE = timedelta()


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def create_application(
    organization: Organization,
    name: str,
    user: User,
    mode: str = Application.Mode.LIVE,
    *,
    grants: Grants = EVERYTHING,
    maker: UUID | None = None,
) -> tuple[Application, str]:
    """Create an application; return it with its secret, which is not stored.

    `maker` is the `User.person` who creates it, and needs the rights of these grants.
    """
    secret = _random(48)
    application = Application.objects.create(
        organization=organization,
        name=name,
        user=user,
        mode=mode,
        permissions=[each for each in ALL_PERMISSIONS if each in grants.permissions],
        send_categories=sorted(grants.categories),
        maker=maker,
        client_id=_random(32),
        client_secret=secret,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )
    return application, secret


def integration_user(organization: Organization, name: str) -> User:
    """Create the user as which one application runs: nobody can log in as it."""
    stem = f"{organization.pk}.{slugify(name) or 'application'}"[:140]
    with transaction.atomic():
        locks.until_commit([f"integration users {organization.pk}"])  # two may want the same name
        user = User(username=_free_username(stem))
        user.set_unusable_password()
        user.save()
        group, _ = Group.objects.get_or_create(name=INTEGRATION_GROUP)
        user.groups.add(group)
    return user


def _free_username(stem: str) -> str:
    taken = set(User.objects.filter(username__startswith=stem).values_list("username", flat=True))
    numbered = (f"{stem}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([stem], numbered) if each not in taken)


class FormerSecretValid(Exception):
    """A secret that was replaced before is still accepted."""


def rotate_secret(application: Application, overlap: timedelta = AT_ONCE) -> str:
    """Set a new secret and return it. The present one is accepted for `overlap` more.

    Without an overlap it, and all access tokens, stop working at once, as does a secret that was
    replaced before. With one, raise FormerSecretValid while such a secret is accepted.
    """
    secret = _random(48)
    with transaction.atomic():
        row = Application.objects.select_for_update(no_key=True).filter(pk=application.pk)
        if overlap and row.filter(former_until__gt=Now()).exists():
            raise FormerSecretValid
        if overlap:
            _keep_former(application, overlap)
        else:
            _forget_former(application)
            revoke_tokens(application)
        application.client_secret = secret
        row.update(secret_used_at=None)
        application.save(update_fields=["client_secret"])
    return secret


def end_former_secret(application: Application) -> None:
    """End a replaced secret now, with all access tokens: whose secret issued one is not stored."""
    with transaction.atomic():
        _forget_former(application)
        revoke_tokens(application)


def delete_expired_secrets() -> None:
    """Delete the digests of replaced secrets that are no longer accepted."""
    Application.objects.filter(former_until__lte=Now()).update(
        former_secret="", former_until=None, former_used_at=None
    )


def _keep_former(application: Application, overlap: timedelta) -> None:
    """Accept the present secret for some time more, and let all tokens end with it.

    A token that is being issued lives for TOKEN_SECONDS. Where that is longer, it is refused as
    when tokens are revoked.
    """
    until = clock.now() + overlap
    outlives = timedelta(seconds=settings.TOKEN_SECONDS) > overlap
    Application.objects.filter(pk=application.pk).update(
        former_secret=F("client_secret"),
        former_until=until,
        former_used_at=F("secret_used_at"),
        generation=F("generation") + int(outlives),
    )
    AccessToken.objects.filter(application_id=application.pk).update(
        expires=Least(F("expires"), until)
    )


def _forget_former(application: Application) -> None:
    Application.objects.filter(pk=application.pk).update(
        former_secret="", former_until=None, former_used_at=None
    )


def revoke_tokens(application: Application) -> None:
    """Revoke an application's access tokens, including any that is being issued.

    Processes that have a token in their cache accept it for up to `authentication.CACHE_SECONDS`.
    """
    with transaction.atomic():
        Application.objects.filter(pk=application.pk).update(generation=F("generation") + 1)
        AccessToken.objects.filter(application_id=application.pk).delete()
