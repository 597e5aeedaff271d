"""What the environment must say for the archive (`ARCHIVE_URL`); docs/archive.md describes it.

It is checked when a process starts, so that nothing is found out by the first old message.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from rme.core.environment.values import Values

SCHEMES = ("file", "s3")
LEAST_DAYS = 31
"""Webhook deliveries read a message's events for up to 30 days."""


class StoreSettings(NamedTuple):
    """Where the archive is, and what opens it. The secret is in no text of this value."""

    url: str
    options: Mapping[str, str]
    """Options of an S3-compatible store by obstore's names."""

    def __repr__(self) -> str:
        return f"StoreSettings({self.url!r})"


def read(env: Mapping[str, str]) -> StoreSettings | None:
    """Return the store; None where there is no archive. Raises ImproperlyConfigured."""
    url = env.get("ARCHIVE_URL", "")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or parts.username or parts.query:
        raise ImproperlyConfigured(
            "ARCHIVE_URL must be file:///folder or s3://bucket/prefix, without credentials."
        )
    if parts.scheme == "file" and (parts.netloc or not parts.path.strip("/")):
        raise ImproperlyConfigured("ARCHIVE_URL: a folder is written as file:///var/lib/archive.")
    if parts.scheme == "s3" and not parts.netloc:
        raise ImproperlyConfigured("ARCHIVE_URL: name the bucket, as in s3://bucket/prefix.")
    uninstalled = [name for name in ("pyarrow", "obstore") if find_spec(name) is None]
    if uninstalled:
        raise ImproperlyConfigured(
            f"ARCHIVE_URL is set, and {' and '.join(uninstalled)} not installed: "
            "install requirements-archive.lock."
        )
    return StoreSettings(url, _options(env) if parts.scheme == "s3" else {})


def read_days(env: Mapping[str, str], message_days: int) -> int:
    """Return after how many days messages are archived. Raises ImproperlyConfigured."""
    days = Values(env).integer("ARCHIVE_AFTER_DAYS", 90)
    if env.get("ARCHIVE_URL") and not LEAST_DAYS <= days < message_days:
        raise ImproperlyConfigured(
            f"ARCHIVE_AFTER_DAYS must be at least {LEAST_DAYS} and less than "
            f"MESSAGE_RETENTION_DAYS ({message_days}), after which messages are deleted."
        )
    return days


def _options(env: Mapping[str, str]) -> dict[str, str]:
    names = {
        "ARCHIVE_S3_ENDPOINT": "endpoint",
        "ARCHIVE_S3_REGION": "region",
        "ARCHIVE_S3_KEY_ID": "access_key_id",
        "ARCHIVE_S3_SECRET": "secret_access_key",
    }
    options = {option: env[name] for name, option in names.items() if env.get(name)}
    return {"region": "us-east-1"} | options
