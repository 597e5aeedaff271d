"""`python -m rme.probe worker QUEUES …`, `beat` or `web`: whether a process of this machine serves.

For the health checks of compose and Kubernetes. A worker is alive while one of its processes ends
tasks or is in one whose time limit has not passed; beat is alive while it orders tasks. It loads
neither Django nor Celery, so that a check costs some hundredths of a second.
"""

import argparse
import http.client
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rme.core.process import liveness

WEB_SECONDS = 4.0


def workers(var: Path, names: Sequence[str], *, worked: bool = False) -> list[str]:
    """Return a sentence about each worker, or beat, that is not alive, or has not `worked` yet."""
    problems = []
    for name in names:
        queues = ",".join(sorted(name.split(",")))
        seconds = liveness.seconds_left(var, queues)
        if seconds is None:
            problems.append(f"{name}: no process runs.")
        elif seconds < 0:
            problems.append(f"{name}: no process has ended a task in time, for {-seconds:.0f} s.")
        elif worked and not liveness.has_worked(var, queues):
            problems.append(f"{name}: no task has succeeded yet.")
    return problems


def web(port: int, path: str) -> list[str]:
    """Return a sentence if the web server does not answer a probe with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WEB_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read(100).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return [f"web: {path} does not answer: {type(error).__name__}."]
    finally:
        connection.close()
    return [] if answer.status == 200 else [f"web: {path} answers {answer.status}, {text}."]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rme.probe", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    worker = parts.add_parser("worker", help="the workers of some queues, as rme.workers has them")
    worker.add_argument("queues", nargs="+")
    worker.add_argument(
        "--worked", action="store_true", help="and whether a task of each has succeeded, ever"
    )
    parts.add_parser("beat", help="the process that orders periodic tasks")
    probe = parts.add_parser("web", help="the web server")
    probe.add_argument("path", nargs="?", default="/readyz", choices=["/livez", "/readyz"])
    options = parser.parse_args()
    var = Path(os.environ.get("RME_VAR") or "var")
    if options.part == "web":
        faults = web(int(os.environ.get("PORT") or "8000"), options.path)
    else:
        worked = options.part == "worker" and options.worked
        names = options.queues if options.part == "worker" else ["beat"]
        faults = workers(var, names, worked=worked)
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
