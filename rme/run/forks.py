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

from rme.run.backoff import RestartBackoff, ending
from rme.run.process import die_with_parent, die_with_supervisor, name_process, signal_group

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What asks a process to stop."""
CHECK_SECONDS = 0.1
SUPERVISOR, PREDECESSOR = "RME_SUPERVISOR", "RME_PREDECESSOR"
"""Variables: the process that replaces this one if it is killed, and the process group that this
one replaces."""
OVERLAP_SECONDS = 2.0
"""How long processes of the predecessor work on after new ones were forked, which take a moment."""


class KeptFork:
    """A forked process that is kept running."""

    def __init__(self, name: str, run: Callable[[], object], *, may_exit: bool = False) -> None:
        """`run` is what the process does; its SystemExit is the exit code. With `may_exit` it is
        only started again when a signal ended it.
        """
        self.name, self.run, self.may_exit = name, run, may_exit
        self.backoff = RestartBackoff(name)
        self.pid = 0
        self.exit_code: int | None = None
        """Of a process that may exit, and has."""

    def keep(self, stopping: bool) -> None:
        """Start the process when it is due, or schedule its next start if it has ended."""
        if not self.pid:
            if not stopping and self.backoff.begin():
                self.pid = self._fork()
            return
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if not ended:
            return
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        if self.may_exit and code >= 0:
            self.exit_code = code
        elif not stopping:
            self.backoff.ended(ending(code))

    def _fork(self) -> int:
        parent, supervisor = os.getpid(), os.getppid()
        pid = os.fork()
        if pid:
            return pid
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
    while not stopping.is_set():
        if predecessor and time.monotonic() > until:
            signal_group(predecessor, signal.SIGTERM)
            predecessor = 0
        for child in children:
            child.keep(stopping=False)
            if child.exit_code is not None:
                return child.exit_code
        stopping.wait(CHECK_SECONDS)
    for child in children:
        if child.pid:
            os.kill(child.pid, signal.SIGTERM)
    while any(child.pid for child in children):
        for child in children:
            child.keep(stopping=True)
        time.sleep(CHECK_SECONDS)
    return 0
