"""A model field whose text is encrypted in the database, and decrypted when it is read.

Loading rows decrypts nothing: if no key of FIELD_KEYS can decrypt a secret, only the code that uses
this secret fails, and not all rows that were loaded with it.
"""

from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.db.models.query_utils import DeferredAttribute


class UnreadableSecret(ValueError):
    """A stored secret was encrypted with a key that FIELD_KEYS no longer has."""

    def __init__(self) -> None:
        super().__init__(
            "This secret was encrypted with a key that FIELD_KEYS doesn't have. Add the key again, "
            "or replace the secret."
        )


class Ciphertext(str):
    """A secret as it is stored. Queries for values (`values_list`) return it like this."""

    __slots__ = ()


@cache
def _keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def keyring() -> MultiFernet:
    """Return the deployment's keys: the first encrypts, and all of them decrypt (rotation)."""
    return _keys(tuple(settings.FIELD_KEYS))


def decrypted(value: str) -> str:
    """Return the text of a value as it is stored. Raises UnreadableSecret."""
    try:
        return keyring().decrypt(value.encode()).decode() if value else value
    except InvalidToken:
        raise UnreadableSecret from None


class _DecryptingAttribute(DeferredAttribute):
    """A row's attribute, which decrypts the stored value on first access."""

    def __get__(self, instance: models.Model | None, cls: Any = None) -> Any:
        value = super().__get__(instance, cls)
        if isinstance(value, Ciphertext) and instance is not None:
            value = instance.__dict__[self.field.attname] = decrypted(value)
        return value

    def __set__(self, instance: models.Model, value: object) -> None:
        # Without it Python would read the instance's dictionary and not call `__get__`.
        instance.__dict__[self.field.attname] = value


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]  # in stubs only
    """A text that is encrypted in the database (Fernet: AES-128-CBC with HMAC-SHA256).

    Reading the attribute raises UnreadableSecret if no key decrypts it.
    """

    descriptor_class = _DecryptingAttribute

    def get_prep_value(self, value: object) -> object:
        text = super().get_prep_value(value)
        if text in (None, "") or isinstance(value, Ciphertext):
            return text
        return keyring().encrypt(text.encode()).decode()

    def pre_save(self, model_instance: models.Model, add: bool) -> object:
        """Return the value to store: the stored one, if the attribute was never read."""
        value = model_instance.__dict__.get(self.attname)
        if isinstance(value, Ciphertext):
            return value
        return super().pre_save(model_instance, add)

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return Ciphertext(value) if value else value
