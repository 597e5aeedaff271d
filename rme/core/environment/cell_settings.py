"""The settings of a deployment that is one of several cells.

The router reads them too, so this module needs no Django.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
SECRET_LENGTH = 32
"""The fewest characters of a secret."""


@dataclass(frozen=True, slots=True)
class CellSettings:
    """This cell's name ("" where there is only one), and all cells by name with internal URLs."""

    name: str
    urls: Mapping[str, str]
    secret: str = field(repr=False)


def read(env: Mapping[str, str]) -> CellSettings:
    """Return the settings of `CELL`, `CELLS` and `CELL_SECRET`. Raise ValueError."""
    name, urls, secret = env.get("CELL", "").strip(), _urls(env.get("CELLS", "")), _secret(env)
    if name and not NAME.fullmatch(name):
        raise ValueError("CELL must be lower-case letters, digits and hyphens.")
    if name and urls and name not in urls:
        raise ValueError(f"CELLS does not name this cell, {name}.")
    if urls and len(secret) < SECRET_LENGTH:
        raise ValueError(f"CELL_SECRET must have {SECRET_LENGTH} characters or more.")
    return CellSettings(name, urls, secret)


def _urls(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, _, url = each.partition("=")
        parts = urlsplit(url)
        if not NAME.fullmatch(name) or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("CELLS must be like eu=http://10.0.0.5:8000,us=https://….")
        if name in found:
            raise ValueError(f"CELLS names {name} twice.")
        found[name] = url.rstrip("/")
    return found


def _secret(env: Mapping[str, str]) -> str:
    path = env.get("CELL_SECRET_FILE")
    if not path:
        return env.get("CELL_SECRET", "")
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ValueError(f"CELL_SECRET_FILE cannot be read: {error.strerror}.") from error
