"""Mails to a server on this machine by libraries, all over kept connections: smtplib and libcurl
over one, aiosmtplib over as many side by side as the transport has.
"""

import asyncio
import io
import os
import smtplib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pycurl

from bench.accepting import accept_in_process
from bench.engine_http2 import install
from bench.scene import Scene
from rme.transport import (
    AddressPolicy,
    Envelope,
    Failure,
    MailSecurity,
    OnResults,
    Reply,
    Request,
    Transport,
)

BODY = b"Subject: A note\r\nMIME-Version: 1.0\r\n\r\n" + b"A line of the mail's text.\r\n" * 50
AIOSMTPLIB = "aiosmtplib==5.1.3"
CONNECTIONS = int(os.environ.get("BENCH_SMTP_CONNECTIONS", "10"))
"""Of aiosmtplib: as many as the transport has to one host."""
SET = 50
"""Mails of a window: as many as the delivery worker hands over at once."""


class LibraryTransport(Transport):
    """The transport with a library in place of its own SMTP: one mail after the other."""

    def perform(
        self, requests: Sequence[Request], on_results: OnResults | None = None
    ) -> list[Reply | Failure]:
        if not requests or requests[0].envelope is None:
            return super().perform(requests, on_results)
        return [self._hand_over(request, request.envelope) for request in requests]

    def _hand_over(self, request: Request, envelope: Envelope | None) -> Reply:
        raise NotImplementedError


class SmtplibTransport(LibraryTransport):
    """The transport with Python's smtplib."""

    kept: smtplib.SMTP | None = None

    def _hand_over(self, request: Request, envelope: Envelope | None) -> Reply:
        assert envelope is not None
        if self.kept is None:
            host, _, port = request.url.split("/")[2].partition(":")
            self.kept = smtplib.SMTP(host, int(port), local_hostname="bench")
        refused = self.kept.sendmail(envelope.mail_from, list(envelope.recipients), request.body)
        assert not refused
        return Reply(250)


class CurlTransport(LibraryTransport):
    """The transport with libcurl's SMTP."""

    kept: Any = None

    def _hand_over(self, request: Request, envelope: Envelope | None) -> Reply:
        assert envelope is not None
        curl = self.kept
        if curl is None:
            curl = self.kept = pycurl.Curl()
            curl.setopt(pycurl.NOSIGNAL, 1)
            curl.setopt(pycurl.UPLOAD, 1)
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.MAIL_FROM, f"<{envelope.mail_from}>")
        curl.setopt(pycurl.MAIL_RCPT, [f"<{each}>" for each in envelope.recipients])
        curl.setopt(pycurl.READDATA, io.BytesIO(request.body))
        curl.setopt(pycurl.INFILESIZE, len(request.body))
        curl.perform()
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        assert status == 250
        return Reply(status)


class AiosmtplibTransport(LibraryTransport):
    """The transport with aiosmtplib: a window's mails side by side, without pipelining, which it
    does not have.
    """

    runner: asyncio.Runner | None = None

    def perform(
        self, requests: Sequence[Request], on_results: OnResults | None = None
    ) -> list[Reply | Failure]:
        if not requests or requests[0].envelope is None:
            return super().perform(requests, on_results)
        if self.runner is None:
            self.runner = asyncio.Runner()
            self.idle: list[Any] = []
        return self.runner.run(self._perform(requests))

    async def _perform(self, requests: Sequence[Request]) -> list[Reply | Failure]:
        waiting = iter(requests)
        sessions = min(CONNECTIONS, len(requests))
        await asyncio.gather(*(self._send(waiting) for _ in range(sessions)))
        return [Reply(250)] * len(requests)

    async def _send(self, waiting: Iterator[Request]) -> None:
        import aiosmtplib

        client = self.idle.pop() if self.idle else None
        for request in waiting:
            assert request.envelope is not None
            if client is None:
                host, _, port = request.url.split("/")[2].partition(":")
                client = aiosmtplib.SMTP(
                    hostname=host,
                    port=int(port),
                    local_hostname="bench",
                    use_tls=False,
                    start_tls=False,
                )
                await client.connect()
            refused, _ = await client.sendmail(
                request.envelope.mail_from, list(request.envelope.recipients), request.body
            )
            assert not refused
        if client is not None:
            self.idle.append(client)


ENGINES: dict[str, type[Transport]] = {
    "rme": Transport,
    "smtplib": SmtplibTransport,
    "libcurl": CurlTransport,
    "aiosmtplib": AiosmtplibTransport,
}


def use(name: str) -> None:
    """Have this process's transports speak SMTP by an engine."""
    from rme.transport import per_thread

    if name == "aiosmtplib":
        install(AIOSMTPLIB)
    per_thread.Transport = ENGINES[name]  # type: ignore[misc]


def accept(scene: Scene, count: int) -> None:
    """Let mails wait in the database, and nothing else."""
    scene.clear()
    accept_in_process(scene, count)


def alone(port: int, count: int) -> dict[str, Callable[[], dict[str, float]]]:
    """Return a function for each engine that sends alone and returns its seconds."""
    install(AIOSMTPLIB)
    envelope = Envelope("a@bench.example", ("p@x.example",), security=MailSecurity.NONE)
    request = Request(f"smtp://127.0.0.1:{port}/bench", BODY, envelope=envelope)

    def send(engine: type[Transport]) -> dict[str, float]:
        transport = engine(AddressPolicy(["127.0.0.1"]))
        transport.perform([request])
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count // SET):
            replies = transport.perform([request] * SET)
            assert all(isinstance(reply, Reply) and reply.status == 250 for reply in replies)
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        transport.close()
        return {**took, "count": count // SET * SET}

    return {name: (lambda engine=engine: send(engine)) for name, engine in ENGINES.items()}  # type: ignore[misc]
