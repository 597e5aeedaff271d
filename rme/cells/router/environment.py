"""The settings of the router, from the environment; docs/cells.md lists them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rme.cells import environment as cell_settings
from rme.cells.environment import BadCells, CellSettings

FORWARDED = "forwarded"


@dataclass(frozen=True, slots=True)
class RouterBounds:
    """What a client, and a cell, may take of a process."""

    buffered_body: int = 64 * 1024
    """A body up to this length is kept, so that it can be sent to a second cell."""
    body: int = 512 * 1024 * 1024
    """The longest body; each view of a cell has its own, smaller bound."""
    memory: int = 64 * 1024 * 1024
    """Bytes of all kept bodies together."""
    client_memory: int = 16 * 1024 * 1024
    """Bytes of the kept bodies of one client address."""
    idle_seconds: float = 10.0
    """Until the next bytes of a body arrive, or those of an answer are taken."""
    buffered_body_seconds: float = 60.0
    body_seconds: float = 600.0
    connect_seconds: float = 1.0
    answer_seconds: float = 75.0
    """Until a cell answers, or sends the next bytes of its answer."""
    look_up_seconds: float = 2.0
    """Until a cell tells whether an organization is its own."""
    in_flight: int = 512
    """Requests that a cell may have at a time, so that one that hangs does not take all."""
    look_ups: int = 128
    """Look-ups at a time; each asks all cells."""
    known: int = 100_000
    """Credentials whose organization is remembered."""
    known_seconds: float = 300.0
    unknown_seconds: float = 2.0
    incomplete_seconds: float = 1.0
    """How long it is remembered that a look-up was answered by some cells only."""
    hold_seconds: float = 8.0
    """How long a callback or a preference page waits for the end of a pause."""
    held: int = 256
    """Requests that wait so at a time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the router reads of the environment."""

    cells: CellSettings
    base_url: str
    """The address of the router, which is the `BASE_URL` of all cells."""
    tls_proxy: str
    """The header by which a proxy before the router tells the client: as for a cell."""
    metrics_token: str = field(repr=False)
    bounds: RouterBounds = RouterBounds()

    @property
    def secure(self) -> bool:
        return self.base_url.startswith("https://")


def read(env: Mapping[str, str]) -> Settings:
    """Return the settings. Raise BadCells."""
    cells = cell_settings.read({**env, "CELL": ""})
    if not cells.urls:
        raise BadCells("CELLS must list the cells: name=https://host:port, separated by commas.")
    proxy = env.get("TLS_PROXY", "").strip().lower()
    if proxy not in ("forwarded", "1", "true", "yes", "on"):
        proxy = ""
    base_url = env.get("BASE_URL") or f"http://127.0.0.1:{env.get('PORT') or '8000'}"
    token = cell_settings.secret(env, "METRICS_TOKEN")
    return Settings(cells, base_url.rstrip("/"), proxy, token)
