"""A small HTTP load: requests over kept connections, as many at once as there are connections."""

import asyncio
import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a load. `rate` is answers a second; `statuses` counts them by HTTP status, and
    `p50` is the median of the seconds until an answer.
    """

    rate: float
    statuses: dict[int, int]
    p50: float


def request_bytes(path: str, body: bytes, token: str, *, port: int) -> bytes:
    """Write one POST request as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _worker(
    port: int, requests: list[bytes], until: float, counted: dict[int, int], times: list[float]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = 0
    while (started := time.perf_counter()) < until:
        writer.write(requests[turn % len(requests)])
        turn += 1
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        counted[status] = counted.get(status, 0) + 1
        times.append(time.perf_counter() - started)
    writer.close()


def run(port: int, requests: list[bytes], *, connections: int, seconds: float) -> Load:
    """Send requests in turn over each connection for some seconds."""

    async def main() -> Load:
        counted: dict[int, int] = {}
        times: list[float] = []
        started = time.perf_counter()
        until = started + seconds
        await asyncio.gather(
            *(_worker(port, requests, until, counted, times) for _ in range(connections))
        )
        took = time.perf_counter() - started
        return Load(sum(counted.values()) / took, counted, statistics.median(times))

    return asyncio.run(main())


def send(port: int, requests: list[bytes], *, connections: int, status: bytes = b"202") -> None:
    """Send each request once, over so many connections; every answer must have that status."""

    async def one(mine: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in mine:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head[9:12] == status, head
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()

    async def main() -> None:
        await asyncio.gather(*(one(requests[i::connections]) for i in range(connections)))

    asyncio.run(main())
