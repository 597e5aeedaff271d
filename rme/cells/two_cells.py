"""`make run-cells`: two cells and a router on one machine, to try them out.

Each cell is a whole `make run` with a data folder and engines of its own. All three have the
address of the router as their `BASE_URL`.
"""

import os
import secrets
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from rme.run.process import reason, say, spawn, stop

NAMES = ("eu", "us")
KEYS = ("CELL_SECRET", "SECRET_KEY")


def up(var: Path, process_environment: Mapping[str, str]) -> int:
    """Run until a signal comes, or the router ends; return the exit code. A cell may end: that is
    something to try out.
    """
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    port = int(process_environment.get("PORT", "8000"))
    try:
        env = environment(var, process_environment, port)
        children = {
            name: spawn(
                [sys.executable, "-m", "rme.run", "up"],
                env={
                    **env,
                    "CELL": name,
                    "TLS_PROXY": "1",  # the router passes on who called
                    "PORT": str(port + number),
                    "RME_VAR": str(_folder(var / name)),
                },
                death=signal.SIGTERM,
            )
            for number, name in enumerate(NAMES, 1)
        }
        children["router"] = spawn(
            [sys.executable, "-m", "rme.router"],
            env={**env, "PORT": str(port)},
            death=signal.SIGTERM,
        )
    except OSError as error:
        say(f"rme: {reason(error)}")
        return 1
    say(f"rme: the router is at {env['BASE_URL']}, its cells are {env['CELLS']}.")
    try:
        while not stopping.wait(0.25):
            if children["router"].poll() is not None:
                say("rme: the router ended.")
                return 1
        return 0
    finally:
        for child in reversed(children.values()):
            stop(child, signal.SIGTERM, 60.0)


def environment(var: Path, inherited: Mapping[str, str], port: int) -> dict[str, str]:
    """Return what is the same for the router and the cells."""
    excluded = ("DATABASE_URL", "REDIS_URL", "CELLS", "CELL", "CELL_SECRET", "RME_VAR", "TLS_PROXY")
    return {
        **{name: value for name, value in inherited.items() if name not in excluded},
        **{name: _key(_folder(var) / name.lower()) for name in KEYS},
        "PORT": str(port),
        "BASE_URL": inherited.get("BASE_URL", f"http://127.0.0.1:{port}"),
        "CELLS": ",".join(
            f"{name}=http://127.0.0.1:{port + number}" for number, name in enumerate(NAMES, 1)
        ),
        "PYTHONUNBUFFERED": "1",
    }


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _key(path: Path) -> str:
    """Return a key that is made once."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
    return path.read_text()


def main() -> int:
    """Run two cells in the folder `cells` of RME_VAR; return the exit code."""
    env = {name: value for name, value in os.environ.items() if value}
    var = Path(env.get("RME_VAR") or "var").resolve()
    return up(var / "cells", env)


if __name__ == "__main__":
    sys.exit(main())
