"""`python -m tests.messaging.archive.killed_job`: runs the job and kills it where its input says.

Each line of standard input names a function; a fork of this process runs the job and kills itself
when that function returns. Forks start in no time, while Django does not.
"""

import os
import signal
import sys
from types import FrameType

import django
from django.conf import settings

django.setup()

from messaging.archive import job, moving, removal, rewriting  # noqa: F401 (before the fork)
from rme.core.db import clock
from tests.messaging.archive.archive_scene import LATER


def run(function: str) -> None:
    """Run the job as if 100 days had passed, and die when a function returns."""

    def kill(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals["__name__"].rpartition(".")[2]
        if event == "return" and f"{module}.{frame.f_code.co_name}" == function:
            os.kill(os.getpid(), signal.SIGKILL)

    settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = 60.0  # a busy machine
    sys.setprofile(kill)
    job.run(now=clock.now() + LATER, at_once=True)


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(line.strip())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print({signal.SIGKILL: "killed", 0: "ended"}.get(status, "failed"), flush=True)
