"""`python -m rme.router`: the router's web server, at HOST and PORT."""

import os
import sys
import tempfile

from rme.cells.environment import BadCells
from rme.cells.router import environment

CONNECTIONS = "4096"
"""The most connections of a process: most of them wait for a cell."""


def main() -> int:
    """Replace this process by the web server; return an exit code if the settings are wrong."""
    env = dict(os.environ)
    workers = env.get("ROUTER_WORKERS") or "1"
    try:
        environment.read(env)
        if not workers.isdecimal() or not 0 < int(workers) < 1000:
            raise BadCells(f"ROUTER_WORKERS={workers} is not a number from 1 to 999.")
    except BadCells as error:
        sys.stderr.write(f"rme: {error}\n")
        return 1
    if workers != "1":
        env["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="rme-router-")
    command = [
        *(
            sys.executable,
            "-m",
            "granian",
            "--interface",
            "asginl",
            "rme.cells.router.asgi:application",
        ),
        *("--host", env.get("HOST") or "127.0.0.1", "--port", env.get("PORT") or "8000"),
        *("--workers", workers, "--http", "1", "--no-ws"),
        *("--http1-header-read-timeout", "15000", "--http1-buffer-size", "65536"),
        *("--backlog", CONNECTIONS, "--backpressure", CONNECTIONS),
        *("--respawn-failed-workers", "--workers-kill-timeout", "8", "--log-level", "warning"),
    ]
    return os.execve(command[0], command, env)  # no shell: it would keep the signals


if __name__ == "__main__":
    sys.exit(main())
