"""HTTP/2 by libcurl and by pyreqwest (Rust), behind the transport's own interface."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pycurl

from bench.push_server import PushServer
from bench.push_transport import BODY, HEADERS
from bench.scene import ROOT
from rme.transport import (
    AddressPolicy,
    Failure,
    FailureKind,
    OnResults,
    Origin,
    Reply,
    Request,
    Transport,
)
from rme.transport.connections import ActiveRequest, Connections
from rme.transport.http1.exchange import Exchange
from rme.transport.smtp.connection import TakeFollowing

PYREQWEST = "pyreqwest==0.15.1"
FOLDER = ROOT / "var" / "bench" / "engines"
"""Where libraries are installed that only these benchmarks need: beside the environment."""
STREAMS = 40
"""As many requests in flight as the delivery worker allows (`concurrency.STREAMS`)."""


class CurlExchange(Exchange):
    """An exchange that speaks HTTP/2, set up as it was before the transport had its own."""

    def _set_up_http(self, request: Request) -> None:
        super()._set_up_http(request)
        if request.http2:
            self.curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
            self.curl.setopt(pycurl.PIPEWAIT, 1)
            # Only libcurl's messages tell a refused stream from a lost connection.
            self.remarks: list[bytes] = []
            self.curl.setopt(pycurl.VERBOSE, 1)
            self.curl.setopt(pycurl.DEBUGFUNCTION, self.remarks.insert)

    def start(self, request: Request, origin: Origin) -> None:
        super().start(request, origin)
        self.remarks.clear()


class CurlConnections(Connections):
    """Connections with libcurl's HTTP/2 in place of our own."""

    def start(
        self, request: Request, origin: Origin, take_following: TakeFollowing | None = None
    ) -> ActiveRequest:
        if request.envelope or not request.http2:
            return super().start(request, origin, take_following)
        exchange = self._idle.pop() if self._idle else CurlExchange(self._policy, [], self._reused)
        exchange.start(request, origin)
        self._exchanges[exchange.curl] = exchange
        self._loop.add(exchange.curl)
        return exchange


class CurlTransport(Transport):
    """The transport with libcurl's HTTP/2 in place of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.connections = CurlConnections(self.policy, [], per_host=self.per_host)


class ReqwestTransport(Transport):
    """The transport with pyreqwest's asynchronous client for requests over HTTP/2."""

    def perform(
        self, requests: Sequence[Request], on_results: OnResults | None = None
    ) -> list[Reply | Failure]:
        if not requests or not requests[0].http2:
            return super().perform(requests, on_results)
        if not hasattr(self, "_runner"):
            self._runner = asyncio.Runner()
            self._client: Any = None
        return self._runner.run(self._perform(requests))

    async def _perform(self, requests: Sequence[Request]) -> list[Reply | Failure]:
        if self._client is None:
            self._client = _client(requests[0])
        results: list[Reply | Failure] = [NONE] * len(requests)
        waiting = iter(enumerate(requests))
        await asyncio.gather(*(self._send(waiting, results) for _ in range(self.streams)))
        return results

    async def _send(self, waiting: Any, results: list[Reply | Failure]) -> None:
        for place, request in waiting:
            headers = request.headers
            if request.common_headers:
                headers = (*request.common_headers.headers, *headers)
            began = time.monotonic()
            builder = self._client.request(request.method, request.url)
            built = builder.headers(headers).body_bytes(request.body).build()
            response = await built.send()
            body = bytes(await response.bytes())
            elapsed = time.monotonic() - began
            results[place] = Reply(response.status, response.headers, body, elapsed=elapsed)


NONE = Failure(FailureKind.NOT_SENT, "no answer")


def _client(request: Request) -> Any:
    from pyreqwest.client import ClientBuilder

    builder = ClientBuilder().no_proxy().https_only(True).http2_prior_knowledge()
    if request.ca_pem:
        builder = builder.add_root_certificate_pem(request.ca_pem.encode())
    builder = builder.runtime_multithreaded(False).timeout(timedelta(seconds=request.timeout))
    return builder.connect_timeout(timedelta(seconds=request.connect_timeout)).build()


ENGINES: dict[str, type[Transport]] = {
    "rme": Transport,
    "libcurl": CurlTransport,
    "pyreqwest": ReqwestTransport,
}


def use(name: str) -> None:
    """Have this process's transports speak HTTP/2 by an engine."""
    from rme.transport import per_thread

    if name == "pyreqwest":
        install(PYREQWEST)
    per_thread.Transport = ENGINES[name]  # type: ignore[misc]


def install(package: str) -> None:
    """Install a library into a folder of its own, and let this process import it."""
    if not (FOLDER / package.partition("==")[0]).exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", str(FOLDER), package], check=True, timeout=300)
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))


def alone(server: PushServer, count: int) -> dict[str, Callable[[], dict[str, float]]]:
    """Return a function for each engine that sends alone and returns its seconds."""
    install(PYREQWEST)
    url = f"{server.url}/3/device/{'ab' * 32}"
    request = Request(url, BODY, headers=HEADERS, http2=True, ca_pem=server.ca.read_text())

    def send(engine: type[Transport]) -> dict[str, float]:
        transport = engine(AddressPolicy(["localhost"]), streams=STREAMS)
        transport.perform([request])
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count // 1000):
            replies = transport.perform([request] * 1000)
            assert all(isinstance(reply, Reply) and reply.status == 200 for reply in replies)
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        transport.close()
        return {**took, "count": count}

    return {name: (lambda engine=engine: send(engine)) for name, engine in ENGINES.items()}  # type: ignore[misc]
