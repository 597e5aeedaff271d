"""A model field whose text is encrypted in the database."""

from functools import cache

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.db import models


@cache
def _keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def keyring() -> MultiFernet:
    """Return the deployment's keys: the first encrypts, and all of them decrypt (rotation)."""
    return _keys(tuple(settings.FIELD_KEYS))


def decrypted(value: str) -> str:
    """Return the text of a value as it is stored."""
    return keyring().decrypt(value.encode()).decode() if value else value


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]  # in stubs only
    """A text that is encrypted in the database (Fernet: AES-128-CBC with HMAC-SHA256)."""

    def get_prep_value(self, value: object) -> object:
        text = super().get_prep_value(value)
        return text if text in (None, "") else keyring().encrypt(text.encode()).decode()

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return value if value is None else decrypted(value)
