"""Secrets from files, which neither manifests nor `docker inspect` nor `ps` show.

`SECRET_KEY_FILE=/path` names the file of one secret. `SECRETS_DIR=/path` names a folder whose files
have the names of the secrets, as Kubernetes and compose mount them.
"""

from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

LISTS = ("SECRET_KEY_FALLBACKS", "FIELD_KEYS", "CELL_SECRET")
"""Secrets that are lists: in a file they may stand one a line."""
SECRETS = (
    *LISTS,
    "ARCHIVE_S3_SECRET",
    "CELERY_BROKER_URL",
    "DATABASE_DIRECT_URL",
    "DATABASE_URL",
    "METRICS_TOKEN",
    "MOVE_DATABASE_URL",
    "OIDC_CLIENT_SECRET",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "REDIS_URL",
    "SECRET_KEY",
    "SMTP_URL",
    "VAPID_PRIVATE_KEY",
)
"""All variables that hold a secret, or a URL that may hold a password."""
REQUIRED = ("DATABASE_URL", "FIELD_KEYS", "REDIS_URL", "SECRET_KEY")
"""What a deployment with SECRETS_DIR must have: defaults would differ between containers."""


def read(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the secrets that files hold. Raises ImproperlyConfigured."""
    values = dict(env)
    folder = env.get("SECRETS_DIR")
    for name in SECRETS:
        file_name = env.get(f"{name}_FILE")
        places = [f"{name}_FILE"] if file_name else []
        if name in env:
            places.append(name)
        if folder and (Path(folder) / name).exists():
            places.append(f"SECRETS_DIR/{name}")
        if len(places) > 1:
            raise ImproperlyConfigured(f"A secret is set twice: {' and '.join(places)}.")
        if places and name not in env:
            path = Path(file_name) if file_name else Path(folder or "") / name
            values[name] = _content(path, places[0], is_list=name in LISTS)
    if folder and (absent_names := [name for name in REQUIRED if name not in values]):
        raise ImproperlyConfigured(f"SECRETS_DIR has no file {' and no file '.join(absent_names)}.")
    return values


def _content(path: Path, place: str, *, is_list: bool) -> str:
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImproperlyConfigured(f"{place} cannot be read: {reason}.") from None
    if not text:
        raise ImproperlyConfigured(f"{place} is empty: remove the file, or write the secret.")
    if is_list:
        return ",".join(filter(None, map(str.strip, text.replace(",", "\n").splitlines())))
    if len(text.splitlines()) > 1:
        raise ImproperlyConfigured(f"{place} has more than one line.")
    return text
