"""Re-encryption of the secrets of second factors, which django-allauth keeps in JSON."""

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from rme.core.db.encrypted_fields import keyring
from rme.core.db.reencryption import Count

NAMES = ("secret", "seed")
"""The encrypted values: a TOTP key, and the seed of recovery codes."""


def reencrypt(*, change: bool = True) -> Count:
    """Encrypt the secrets with the first of FIELD_KEYS; return how many had which key."""
    first = Fernet(settings.FIELD_KEYS[0])
    found = Count("mfa.Authenticator.data")
    for row in Authenticator.objects.order_by("pk").iterator(chunk_size=100):
        for name in NAMES:
            if name not in row.data:
                continue
            try:
                first.decrypt(row.data[name].encode())
                found.current += 1
                continue
            except InvalidToken:
                pass  # encrypted with another key, perhaps
            try:
                new = keyring().rotate(row.data[name].encode()).decode()
            except InvalidToken:
                found.unreadable.append(row.pk)
                continue
            found.old += 1
            if change:
                # of the row as it was read: a code used meanwhile stays used
                same = Authenticator.objects.filter(pk=row.pk, data=row.data)
                row.data = {**row.data, name: new}
                same.update(data=row.data)
    return found
