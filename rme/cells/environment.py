"""`CELL`, `CELLS` and `CELL_SECRET`: which cell this is, and which others there are.

A deployment without them is one cell without a name. Imports no Django: the router reads them too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
SECRET_LENGTH = 32


class BadCells(ValueError):
    """The settings of cells contradict each other or cannot be read."""


@dataclass(frozen=True, slots=True)
class CellSettings:
    """The cells of a deployment."""

    own: str = ""
    """The name of this cell; empty: there is no other, or this is the router."""
    urls: Mapping[str, str] = field(default_factory=dict)
    """The internal URL of each cell, this one included, without a slash at the end."""
    secret: str = field(default="", repr=False)
    """What the cells and the router sign their calls with; several between commas, the first of
    which signs, while it is replaced."""

    @property
    def others(self) -> dict[str, str]:
        """Return the internal URLs of the other cells by name."""
        return {name: url for name, url in self.urls.items() if name != self.own}


def read(env: Mapping[str, str]) -> CellSettings:
    """Return the settings of cells. Raise BadCells."""
    cell, urls = env.get("CELL", ""), _urls(env.get("CELLS", ""))
    keys = secret(env, "CELL_SECRET").replace(",", "\n").split()
    if not cell and not urls:
        return CellSettings()
    if not keys or min(map(len, keys)) < SECRET_LENGTH:
        raise BadCells(f"CELL_SECRET must have at least {SECRET_LENGTH} characters.")
    if cell and cell not in urls:
        raise BadCells(f"CELLS must list every cell, and {cell} (CELL) too.")
    return CellSettings(cell, urls, ",".join(keys))


def secret(env: Mapping[str, str], name: str) -> str:
    """Return a secret, from the file that NAME_FILE names or from the variable itself; empty: there
    is none. Raise BadCells.
    """
    path = env.get(f"{name}_FILE")
    if not path:
        return env.get(name, "")
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise BadCells(f"{name}_FILE cannot be read: {error.strerror}.") from error


def _urls(text: str) -> dict[str, str]:
    urls: dict[str, str] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        name, equals, url = entry.partition("=")
        name, url = name.strip(), url.strip().rstrip("/")
        parts = urlsplit(url)
        if not equals or not NAME.fullmatch(name) or name in urls:
            raise BadCells("CELLS is a list of name=https://host:port, each name once.")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            raise BadCells(f"CELLS: the URL of {name} must be a scheme, a host and a port at most.")
        urls[name] = url
    return urls
