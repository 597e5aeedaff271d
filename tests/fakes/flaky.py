"""A mail server or an SMS service that is killed, slowed and muted from outside, as a process.

`python -m tests.fakes.flaky smtp --port 1 --ids FILE`: it writes a line for each message to the
file before it answers: the Message-ID of a mail, the `id` of an SMS. SIGUSR1 makes it slow, SIGUSR2
mute (it accepts and does not answer), SIGHUP well again.
"""

import argparse
import asyncio
import json
import re
import signal
from pathlib import Path
from typing import TextIO

SLOW_SECONDS = 1.0
_MESSAGE_ID = re.compile(rb"^message-id:\s*<([^>]*)>", re.IGNORECASE | re.MULTILINE)

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


class Service:
    """The state of a service, and the messages that it accepted."""

    def __init__(self, ids: TextIO) -> None:
        self.ids = ids
        self.state = "well"

    def set_state(self, state: str) -> None:
        self.state = state

    def take(self, identifier: str) -> None:
        self.ids.write(f"{identifier}\n")
        self.ids.flush()

    async def delay(self) -> None:
        """Wait before a message is answered, as long as the state requires."""
        if self.state == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        while self.state == "mute":
            await asyncio.sleep(0.1)

    async def serve(self, reader: Reader, writer: Writer) -> None:
        try:
            await self.talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass  # the client left
        finally:
            writer.close()

    async def talk(self, reader: Reader, writer: Writer) -> None:
        raise NotImplementedError


class Smtp(Service):
    """The part of RFC 5321 that is needed."""

    async def talk(self, reader: Reader, writer: Writer) -> None:
        writer.write(b"220 flaky ESMTP\r\n")
        while line := await reader.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                mail = await reader.readuntil(b"\r\n.\r\n")
                found = _MESSAGE_ID.search(mail)
                self.take(found.group(1).decode() if found else "?")
                await self.delay()
                writer.write(b"250 2.0.0 queued\r\n")
            elif verb == b"EHLO":
                writer.write(b"250-flaky\r\n250 8BITMIME\r\n")
            elif verb == b"QUIT":
                writer.write(b"221 bye\r\n")
                return
            else:
                writer.write(b"250 2.1.0 ok\r\n")
            await writer.drain()


class Sms(Service):
    """An HTTP/1.1 API that takes a JSON object with an `id`."""

    async def talk(self, reader: Reader, writer: Writer) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = re.search(rb"content-length:\s*(\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length.group(1)) if length else 0)
            identifier = json.loads(body)["id"]
            self.take(identifier)
            await self.delay()
            answer = json.dumps({"id": identifier}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
            await writer.drain()


KINDS: dict[str, type[Service]] = {"smtp": Smtp, "sms": Sms}
MOODS = {signal.SIGUSR1: "slow", signal.SIGUSR2: "mute", signal.SIGHUP: "well"}


async def run(kind: str, port: int, ids: TextIO) -> None:
    service = KINDS[kind](ids)
    loop = asyncio.get_running_loop()
    for number, state in MOODS.items():
        loop.add_signal_handler(number, service.set_state, state)
    server = await asyncio.start_server(service.serve, "127.0.0.1", port, backlog=200)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ids", type=Path, required=True)
    options = parser.parse_args()
    with options.ids.open("a") as ids:
        asyncio.run(run(options.kind, options.port, ids))


if __name__ == "__main__":
    main()
