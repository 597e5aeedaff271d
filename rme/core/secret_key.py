"""The deployment's secret key where the environment gives none: made once, kept in `var/`."""

import os
import secrets
from pathlib import Path


def secret_key(var: Path) -> str:
    """Read the key of this data folder, or make it; several processes may start at once."""
    path = var / "secret_key"
    var.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        own = path.with_name(f"secret_key.{os.getpid()}")
        own.touch(mode=0o600)
        own.write_text(secrets.token_urlsafe(48))
        try:
            os.link(own, path)  # whole or not at all, and the first one wins
        except FileExistsError:
            return path.read_text()
        finally:
            own.unlink()
    return path.read_text()
