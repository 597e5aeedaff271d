"""Mails to a server on this machine by smtplib and by libcurl, each over one kept connection."""

import io
import smtplib
import time
from collections.abc import Callable, Sequence
from typing import Any

import pycurl

from bench.accepting import accept_in_process
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


ENGINES: dict[str, type[Transport]] = {
    "rme": Transport,
    "smtplib": SmtplibTransport,
    "libcurl": CurlTransport,
}


def use(name: str) -> None:
    """Have this process's transports speak SMTP by an engine."""
    from rme.transport import per_thread

    per_thread.Transport = ENGINES[name]  # type: ignore[misc]


def accept(scene: Scene, count: int) -> None:
    """Let mails wait in the database, and nothing else."""
    scene.clear()
    accept_in_process(scene, count)


def alone(port: int, count: int) -> dict[str, Callable[[], dict[str, float]]]:
    """Return a function for each engine that sends alone and returns its seconds."""
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
