"""Processes that are forked from one that has loaded the service, and again when they end.

When that one is killed itself, they work on below a supervisor, until its successor has loaded.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import util

from rme.run import keeping
from rme.run.keeping import KeptProcess
from rme.run.process import (
    CHECK_SECONDS,
    die_with_parent,
    die_with_supervisor,
    name_process,
    signal_group,
)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What asks a process to stop."""
SUPERVISOR, PREDECESSOR = "RME_SUPERVISOR", "RME_PREDECESSOR"
"""Variables: the process that replaces this one if it is killed, and the process group that this
one replaces."""
OVERLAP_SECONDS = 2.0
"""How long processes of the predecessor work on after new ones were forked, which take a moment."""


class KeptFork(KeptProcess):
    """A forked process that is kept running."""

    def __init__(self, name: str, run: Callable[[], object], *, may_exit: bool = False) -> None:
        """`run` is what the process does; its SystemExit is the exit code."""
        super().__init__(name, self._fork, self._exit_code, may_exit=may_exit)
        self.run = run
        self.pid = 0

    def _exit_code(self) -> int | None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None

    def _fork(self) -> None:
        parent, supervisor = os.getpid(), os.getppid()
        self.pid = os.fork()
        if self.pid:
            return
        code = 0
        try:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            if os.environ.get(SUPERVISOR) == str(supervisor):
                die_with_supervisor(parent, supervisor)
            else:
                die_with_parent(parent, signal.SIGTERM)
            name_process(f"rme-{self.name}")
            self.run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:  # noqa: BLE001 - it is shown, and the process ends
            traceback.print_exc()
            code = 1
        finally:
            # as processes of multiprocessing do: its temporary folder goes, whose pool this was
            util._run_finalizers()  # type: ignore[attr-defined]  # no stub has it
            sys.stderr.flush()
            os._exit(code)  # runs none of the parent's exit handlers


def keep(children: Sequence[KeptFork]) -> int:
    """Keep children running until this process gets a signal to stop; then let them finish.

    Return the exit code, which is that of a child if one has exited that may.
    """
    stopping = threading.Event()
    for number in SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    predecessor = int(os.environ.pop(PREDECESSOR, "0"))
    until = time.monotonic() + OVERLAP_SECONDS

    def end_predecessor() -> None:
        nonlocal predecessor
        if predecessor and time.monotonic() > until:
            signal_group(predecessor, signal.SIGTERM)
            predecessor = 0

    code = keeping.keep(children, stopping, end_predecessor)
    if not stopping.is_set():
        return code
    for child in children:
        if child.is_running:
            os.kill(child.pid, signal.SIGTERM)
    while any(child.is_running for child in children):
        for child in children:
            child.look(stopping=True)
        time.sleep(CHECK_SECONDS)
    return 0
