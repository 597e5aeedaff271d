"""The deployment's secret key where the environment sets none: generated once, stored in `var/`."""

import os
import secrets
from pathlib import Path


def secret_key(var: Path) -> str:
    """Return the key of a data folder; generate it if need be. Processes may start at once."""
    path = var / "secret_key"
    var.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        own = path.with_name(f"secret_key.{os.getpid()}")
        own.touch(mode=0o600)
        own.write_text(secrets.token_urlsafe(48))
        try:
            os.link(own, path)  # atomic, and the first process wins
        except FileExistsError:
            return path.read_text()
        finally:
            own.unlink()
    return path.read_text()
