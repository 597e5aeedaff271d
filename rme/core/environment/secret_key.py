"""The deployment's secret key where the environment sets none: generated once, stored in `var/`.
And the keys that are derived from it where the environment sets none.
"""

import base64
import hashlib
import os
import secrets
from pathlib import Path


def secret_key(var: Path) -> str:
    """Return the key of a data folder; generate it if need be. Processes may start at once."""
    path = var / "secret_key"
    var.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        process_file = path.with_name(f"secret_key.{os.getpid()}")
        process_file.touch(mode=0o600)
        process_file.write_text(secrets.token_urlsafe(48))
        try:
            os.link(process_file, path)  # atomic, and the first process wins
        except FileExistsError:
            return path.read_text()
        finally:
            process_file.unlink()
    return path.read_text()


def derived_key(secret: str, purpose: str) -> str:
    """Return 32 bytes in base64url: a Fernet key (`fields`), or that of Web Push (`vapid`)."""
    digest = hashlib.sha256(f"rme.{purpose}:{secret}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()
