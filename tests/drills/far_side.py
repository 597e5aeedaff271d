"""The far end of the wires of a drill: an SMS gateway that reports each SMS as delivered, and a
receiver of webhooks. As a process: `python -m tests.drills.far_side --port 1 --folder FOLDER`.

The gateway is one of `http_sms`: it takes `id` and `callback`, and calls the callback until that is
answered 200, as gateways do.
"""

import argparse
import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import aiohttp
from aiohttp import web

from tests.service import ROOT, free_port

REPORT_AFTER_SECONDS, REPEAT_SECONDS, REPORT_SECONDS = 0.05, 0.5, 15.0
ACCOUNT = {
    "parameters_json": '{"to": "{to}", "text": "{text}", "id": "{id}", "callback": "{callback}"}',
    "callback_secret": "a secret of more than thirty-two characters",
}
"""Settings of the `http_sms` account that sends by the gateway, but for its `url`."""
_FILES = ("sms", "reports", "events")
_Write = Callable[..., None]


@dataclass(frozen=True)
class ReportsAccount:
    """What became of the gateway's reports."""

    made: int
    """SMS that the gateway has, and reports."""
    lost: int
    """Those whose report was not taken."""
    repeated: int
    """Those whose report took more than one call."""


@dataclass(frozen=True)
class EventsAccount:
    """What the receiver of webhooks was told."""

    made: int
    """Events of which it has to be told."""
    lost: int
    repeated: int
    """Webhooks beyond the first of an event; they may be repeated."""


class FarSide:
    """The process, and what it wrote down."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        for name in _FILES:
            (folder / name).touch()
        command = [sys.executable, "-m", "tests.drills.far_side"]
        command += ["--port", str(self.port), "--folder", str(folder)]
        self.process = subprocess.Popen(command, cwd=ROOT)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def sms(self) -> "Counter[str]":
        """Count the SMS by attempt."""
        return Counter(attempt for attempt, *_ in self._lines("sms"))

    def reports(self) -> dict[str, int]:
        """Return how many calls each attempt's report took, of the reports that were taken."""
        return {attempt: int(calls) for attempt, calls in self._lines("reports")}

    def events(self) -> "Counter[tuple[str, str]]":
        """Count the webhooks by type and the id of what they are about."""
        return Counter((kind, about) for kind, about in self._lines("events"))

    def _lines(self, name: str) -> list[list[str]]:
        return [line.split() for line in (self._folder / name).read_text().splitlines()]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class _Gateway:
    def __init__(self, write: _Write) -> None:
        self._write = write
        self._reports: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    async def take(self, request: web.Request) -> web.Response:
        sms = await request.json()
        self._write("sms", sms["id"])
        report = asyncio.create_task(self._report(sms["id"], sms["callback"]))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)
        return web.json_response({"id": sms["id"]})

    async def _report(self, attempt: str, callback: str) -> None:
        await asyncio.sleep(REPORT_AFTER_SECONDS)
        self._session = self._session or aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(REPORT_SECONDS)
        )
        calls = 1
        while not await self._is_taken(self._session, f"{callback}&status=delivered"):
            calls += 1
            await asyncio.sleep(REPEAT_SECONDS)
        self._write("reports", attempt, calls)

    async def _is_taken(self, session: aiohttp.ClientSession, url: str) -> bool:
        try:
            async with session.post(url) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


class _Receiver:
    def __init__(self, write: _Write) -> None:
        self._write = write

    async def take(self, request: web.Request) -> web.Response:
        event = await request.json()
        data = event["data"]
        self._write("events", event["type"], data.get("messageId") or data.get("id"))
        return web.Response(status=204)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(arguments)
    files: dict[str, TextIO] = {name: (options.folder / name).open("a") for name in _FILES}

    def write(name: str, *values: object) -> None:
        files[name].write(" ".join(map(str, values)) + "\n")
        files[name].flush()

    app = web.Application()
    app.router.add_post("/sms", _Gateway(write).take)
    app.router.add_post("/events", _Receiver(write).take)
    web.run_app(app, host="127.0.0.1", port=options.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
