"""The cells: calls to them, and which cells are away.

aiohttp, because it is asyncio's maintained HTTP client with a parser in C. It would send a request
of an idempotent method a second time after a lost connection: `_once` keeps it from that.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp
import orjson
from yarl import URL

from rme.cells import signatures
from rme.cells.environment import CellSettings
from rme.cells.router.environment import RouterBounds
from rme.core.absence import Absence

DOWN_SECONDS = 1.0
"""How long a cell that took no connection gets no requests."""
KEEP_ALIVE_SECONDS = 8.0
"""Less than the idle time after which the web server of a cell ends a connection: a request that
meets the end of its connection may have been taken, and cannot be sent again."""
SILENT_SECONDS = 1.0
"""How often a cell is asked for an owner whose answer to the last such question did not come."""
Body = bytes | AsyncIterator[bytes] | None


class CellAway(Exception):
    """The cell has not taken the request: no byte was sent."""


class CellBusy(Exception):
    """The cell has as many requests as it may have: nothing was sent."""


class AnswerLost(Exception):
    """The request was sent and there is no answer: the cell may have taken it."""


@dataclass
class CellState:
    """A cell as this process sees it."""

    name: str
    url: str
    down_until: float = 0.0
    """When everybody may connect again: nobody tries first, since a refusal takes no time."""
    silence: Absence = field(default_factory=lambda: Absence(SILENT_SECONDS))
    """Whether it takes connections, and the answer to its last look-up did not come in time."""
    in_flight: int = 0

    @property
    def is_up(self) -> bool:
        """Return whether requests may be sent to the cell."""
        return time.monotonic() >= self.down_until

    def went_away(self) -> None:
        """Note that the cell took no connection."""
        self.down_until = time.monotonic() + DOWN_SECONDS

    @contextmanager
    def slot(self, limit: int) -> Iterator[None]:
        """Count a request in flight. Raise CellAway if the cell is down, or CellBusy."""
        if not self.is_up:
            raise CellAway
        if self.in_flight >= limit:
            raise CellBusy
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """What a cell answers about a key."""

    organization: str
    """Empty for a person."""
    cell: str
    """Where the organization is: this cell, or the one to which it has moved."""


class Cells:
    """All cells, by name."""

    def __init__(self, settings: CellSettings, bounds: RouterBounds) -> None:
        self.by_name = {name: CellState(name, url) for name, url in sorted(settings.urls.items())}
        self.secret, self.bounds = settings.secret, bounds
        self._session: aiohttp.ClientSession | None = None

    def __iter__(self) -> Iterator[CellState]:
        return iter(self.by_name.values())

    @property
    def session(self) -> aiohttp.ClientSession:
        """Return the client, made in the running loop at first use."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=10
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=self.bounds.connect_seconds,
                    sock_read=self.bounds.answer_seconds,
                ),
                read_bufsize=256 * 1024,
                trust_env=False,
                middlewares=(_once,),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def send(
        self, cell: CellState, method: str, target: str, headers: list[tuple[str, str]], body: Body
    ) -> aiohttp.ClientResponse:
        """Return a cell's answer, whose body is still to be read. Raise CellAway or AnswerLost."""
        try:
            return await self.session.request(
                method,
                URL(cell.url + target, encoded=True),
                headers=headers,
                data=body,
                allow_redirects=False,
            )
        except CellAway:
            cell.went_away()
            raise
        except aiohttp.ClientError as error:
            raise AnswerLost from error

    async def ask_owner(self, cell: CellState, question: Mapping[str, str]) -> OwnerAnswer | None:
        """Return what a cell knows of a key; None if it does not know it. Raise CellAway.

        A silent cell is asked once a second, so that look-ups that wait for it do not take all the
        places of others.
        """
        if not (cell.is_up and cell.silence.may_try()):
            raise CellAway
        body = orjson.dumps(question)
        purpose = signatures.call_purpose("POST", signatures.OWNER)
        headers = [
            ("Authorization", signatures.sign(self.secret, purpose, body)),
            ("Content-Type", "application/json"),
        ]
        try:
            async with asyncio.timeout(self.bounds.look_up_seconds):
                response = await self.send(cell, "POST", signatures.OWNER, headers, body)
                async with response:
                    text = await response.read()
        except TimeoutError as error:
            cell.silence.note_failure()
            raise CellAway from error
        except (AnswerLost, aiohttp.ClientError) as error:
            raise CellAway from error
        cell.silence.note_answer()
        if response.status != 200:
            raise CellAway  # its database is away, or the secrets differ
        return _answer(text)


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request by the client once, with errors that it does not answer by another try."""
    try:
        return await handler(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise CellAway from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise AnswerLost from error


def _answer(text: bytes) -> OwnerAnswer | None:
    try:
        fields = orjson.loads(text)
        return OwnerAnswer(fields["organization"], fields["cell"]) if fields["cell"] else None
    except (ValueError, KeyError, TypeError) as error:
        raise CellAway from error
