"""`python -m rme.core.process.errand_process DESCRIPTOR [service]`: carries out errands in turn.

It only receives errands from its parent, by a socket pair that no other process has. With
`service`, it loads the settings and models first, and its errands may use the database.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from multiprocessing.connection import Connection
from traceback import format_exc

IDLE_SECONDS = 60.0
"""The process exits after this time without errands."""
PIECE = 64 * 1024
"""The least bytes of a piece of a long result."""
_MEMORY = 2 * 1024**3
_NICENESS = 10
"""It only uses the CPU time that the service leaves."""


def main(descriptor: int, *, service: bool) -> None:
    """Carry out errands; answer the parent by the CPU seconds of each, a kind and a value.

    The kinds are `piece` (the next bytes of a long result), `result` and `error`.
    """
    os.nice(_NICENESS)
    for stop in (signal.SIGINT, signal.SIGTERM):  # to the whole group: it ends with its parent
        signal.signal(stop, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # kills it, even in native code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    if service:
        _load_service()
    with Connection(descriptor) as connection:
        while connection.poll(IDLE_SECONDS):
            try:
                seconds, work, args = connection.recv()  # imports what the work needs
            except EOFError:
                return
            start_seconds = _cpu_seconds()
            signal.setitimer(signal.ITIMER_PROF, seconds)
            kind: str = "result"
            result: object = None
            try:
                result = work(*args)
                if isinstance(result, Iterator):
                    for piece in in_pieces(result):
                        connection.send((_cpu_seconds() - start_seconds, "piece", piece))
                    result = None
            except Exception as error:  # noqa: BLE001 (raised in the parent)
                error.add_note(format_exc())
                kind, result = "error", error
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send((_cpu_seconds() - start_seconds, kind, result))
            if service:
                _close_connections()


def in_pieces(parts: Iterable[bytes | str]) -> Generator[bytes]:
    """Join the parts of a long result to pieces of `PIECE` bytes or more; the last may be less."""
    piece = bytearray()
    for part in parts:
        piece += part.encode() if isinstance(part, str) else part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _load_service() -> None:
    import django
    from django.conf import settings

    from rme.core.db import availability

    django.setup()
    availability.limit(settings.DATABASE_SECONDS)


def _close_connections() -> None:
    """Close the connections to databases: a process without errands needs none."""
    from django.db import connections

    connections.close_all()


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its finished children."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


if __name__ == "__main__":
    main(int(sys.argv[1]), service=sys.argv[2:] == ["service"])
