"""Where the embedded engines keep their data and their sockets."""

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

UNPRIVILEGED = 65534
"""Who runs PostgreSQL where we are root: it refuses to (the user `nobody` of every Linux)."""
ROOTS_FOLDER = Path("/var/lib/rme-engines")
"""Where root keeps what `nobody` must reach. Not in a temporary folder: those are cleaned by age,
and anybody could put binaries there before us."""


def sockets(var: Path) -> Path:
    """Give the folder of the engines' sockets: short, because a socket's path has 107 bytes.

    It does not follow TMPDIR: a shell with another one must find the same engines.
    """
    digest = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    return Path("/tmp") / f"rme-{os.getuid()}-{digest}"


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
        return ROOTS_FOLDER / f"data-{digest}"
    return var / "postgres"
