"""Where the embedded engines keep their data and their sockets."""

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

UNPRIVILEGED = 65534
"""The user who runs PostgreSQL for root, for whom it refuses to run (`nobody` on every Linux)."""
ROOTS_FOLDER = Path("/var/lib/rme-engines")
"""Root's folder for files that `nobody` must reach. Not a temporary folder: old files are deleted
there, and any user could put binaries there first."""


def sockets(var: Path) -> Path:
    """Return the folder of the engines' sockets: short, because a socket's path has 107 bytes.

    It does not depend on TMPDIR: a shell with another one must find the same engines.
    """
    digest = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    return Path("/tmp") / f"rme-{os.getuid()}-{digest}"


def engine_env(var: Path) -> dict[str, str]:
    """Return the environment by which the engines of a data folder are reached."""
    folder = sockets(var)
    return {
        "DATABASE_URL": f"postgres://rme@{quote(str(folder), safe='')}/rme",
        "REDIS_URL": f"unix://{folder}/valkey.sock?db=0",
    }


def reachable(folder: Path) -> bool:
    """Return whether an unprivileged user can enter a folder's parents."""
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def postgres_data(var: Path) -> Path:
    """Return PostgreSQL's folder: in `var`, or elsewhere if `nobody` could not enter it."""
    if os.getuid() == 0 and not reachable(var / "postgres"):
        digest = hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
        return ROOTS_FOLDER / f"data-{digest}"
    return var / "postgres"
