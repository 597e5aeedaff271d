"""Where the embedded engines keep their data and their sockets."""

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

UNPRIVILEGED = 65534
"""Who runs PostgreSQL where we are root: it refuses to (the user `nobody` of every Linux)."""


def sockets(var: Path) -> Path:
    """Give the folder of the engines' sockets: short, because a socket's path has 107 bytes."""
    digest = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"rme-{os.getuid()}-{digest}"


def engine_env(var: Path) -> dict[str, str]:
    """Tell how the engines of a data folder are reached; starts nothing and touches nothing."""
    folder = sockets(var)
    return {
        "DATABASE_URL": f"postgres://rme@{quote(str(folder), safe='')}/rme",
        "REDIS_URL": f"unix://{folder}/valkey.sock?db=0",
    }


def reachable(folder: Path) -> bool:
    """Say whether an unprivileged user can enter a folder's parents."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def postgres_data(var: Path) -> Path:
    """Give PostgreSQL's folder: in `var`, or elsewhere where `nobody` could not enter it."""
    if os.getuid() == 0 and not reachable(var / "postgres"):
        digest = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
        return Path(f"/var/tmp/rme-postgres-{digest}")
    return var / "postgres"
