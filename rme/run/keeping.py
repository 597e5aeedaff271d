"""Processes that are kept running: started when they are due, and again after they have ended."""

import threading
from collections.abc import Callable, Sequence

from rme.run.backoff import RestartBackoff, ending
from rme.run.process import CHECK_SECONDS, EngineFailed, reason


class KeptProcess:
    """A process of this one, and when it is started."""

    def __init__(
        self,
        name: str,
        start: Callable[[], object],
        poll: Callable[[], int | None],
        *,
        may_exit: bool = False,
    ) -> None:
        """`start` raises OSError or EngineFailed. `poll` returns the exit code once the process has
        ended, negative for a signal. With `may_exit` only a signal has it started again.
        """
        self.name, self.start, self.poll, self.may_exit = name, start, poll, may_exit
        self.backoff = RestartBackoff(name)
        self.is_running = False
        self.cause = ""
        """Why it ended last."""
        self.exit_code: int | None = None
        """Of a process that may exit, and has."""

    def look(self, *, stopping: bool = False) -> None:
        """Start the process if it is due; if it has ended, schedule its next start."""
        if not self.is_running:
            if not stopping and self.exit_code is None and self.backoff.begin():
                self._start()
            return
        code = self.poll()
        if code is None:
            return
        self.is_running = False
        if self.may_exit and code >= 0:
            self.exit_code = code
        elif not stopping:
            self._ended(ending(code))

    def _start(self) -> None:
        try:
            self.start()
        except EngineFailed as error:
            self._ended(str(error))
        except OSError as error:
            self._ended(reason(error))
        else:
            self.is_running = True

    def _ended(self, cause: str) -> None:
        self.cause = cause
        self.backoff.ended(cause)


def keep(
    processes: Sequence[KeptProcess],
    stopping: threading.Event,
    look_around: Callable[[], int | None],
) -> int:
    """Keep processes running until `stopping` is set, or one that may exit has.

    Return the exit code: that one's, or what `look_around` returns, which ends it too.
    """
    while not stopping.is_set():
        for process in processes:
            process.look()
            if process.exit_code is not None:
                return process.exit_code
        if (code := look_around()) is not None:
            return code
        stopping.wait(CHECK_SECONDS)
    return 0
