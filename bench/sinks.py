"""A mail server that takes everything and does nothing: `python -m bench.sinks --port 2525`.

It speaks just enough SMTP (RFC 5321) to be talked to by any client, and counts. With `--ids FILE`
it appends the Message-ID of each mail to a file, one a line.
"""

import argparse
import asyncio
import re
from pathlib import Path
from typing import TextIO

_MESSAGE_ID = re.compile(rb"^message-id:\s*<([^>]*)>", re.IGNORECASE | re.MULTILINE)


class Counter:
    """What the sink has taken, over all connections."""

    def __init__(self, ids: TextIO | None = None) -> None:
        self.mails = 0
        self.ids = ids

    def take(self, mail: bytes) -> None:
        self.mails += 1
        if self.ids:
            found = _MESSAGE_ID.search(mail)
            self.ids.write((found.group(1).decode() if found else "?") + "\n")
            self.ids.flush()


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.buffer = b""
        self.in_data = self.over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(b"220 sink ESMTP\r\n")

    def data_received(self, data: bytes) -> None:
        """Answer all commands that came together by one write, as RFC 2920 §3.2 asks."""
        self.buffer += data
        answers = []
        while (answer := self._step()) is not None:
            answers.append(answer)
        self.transport.write(b"".join(answers))
        if self.over:
            self.transport.close()

    def _step(self) -> bytes | None:
        """Take one command, or one mail, and give the answer; None when more has to come first."""
        if self.in_data:
            end = self.buffer.find(b"\r\n.\r\n")
            if end < 0:
                return None
            self.counter.take(self.buffer[: end + 2])
            self.buffer = self.buffer[end + 5 :]
            self.in_data = False
            return b"250 2.0.0 queued as 1\r\n"
        line, found, rest = self.buffer.partition(b"\r\n")
        if not found:
            return None
        self.buffer = rest
        return self._answer(line[:4].upper())

    def _answer(self, verb: bytes) -> bytes:
        if verb == b"DATA":
            self.in_data = True
            return b"354 go on\r\n"
        if verb == b"EHLO":
            return b"250-sink\r\n250-8BITMIME\r\n250-PIPELINING\r\n250 SIZE 10485760\r\n"
        if verb == b"COUN":  # ours: how many mails came so far
            return b"250 %d\r\n" % self.counter.mails
        if verb == b"QUIT":
            self.over = True
            return b"221 bye\r\n"
        return b"250 2.1.0 ok\r\n"


async def serve(port: int, counter: Counter) -> None:
    """Take mail on a port of this machine until cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(counter), "127.0.0.1", port, backlog=200)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ids", type=Path)
    options = parser.parse_args()
    ids = options.ids.open("a") if options.ids else None
    asyncio.run(serve(options.port, Counter(ids)))


if __name__ == "__main__":
    main()
