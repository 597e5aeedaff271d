"""Ports for servers that tests start: no two tests of a machine hold the same one."""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

_PORTS = range(16_000, 32_000, 8)
"""Below those that the kernel gives to sockets that name none (from 32,768 by default). Eight
apart, for programs that use the next ones too.
"""
_CLAIMS = Path(tempfile.gettempdir(), f"rme-test-ports-{os.getuid()}")
_claims = _CLAIMS.open("ab")  # has a lock of one byte for each port, while it is open
_own: set[int] = set()


def free_port() -> int:
    """Return a port of 127.0.0.1 on which no process listens, and claim it until this process ends.

    Between the choice and a server's start seconds pass, in which other tests choose theirs.
    """
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if port in _own:
            continue
        with suppress(OSError):
            fcntl.lockf(_claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            socket.create_server(("127.0.0.1", port)).close()
            _own.add(port)
            return port
    raise AssertionError("all ports are taken")
