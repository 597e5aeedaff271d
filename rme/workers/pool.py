"""Celery's pool of processes, which survives failures during its start, and ends its processes
between tasks.
"""

import os
import signal
from typing import Any

from celery.concurrency import asynpool, prefork


class Worker(asynpool.Worker):
    """A process of the pool. On SIGTERM it finishes its task, if it has one, and ends.

    Billiard would raise SystemExit in the middle of the task, and the outcomes of its window would
    stay unknown. systemd signals the whole group: SIGTERM reaches each process, not only the
    worker.
    """

    wait_for_job: Any
    is_idle = False
    is_to_end = False

    def on_loop_start(self, pid: int) -> None:
        """Handle SIGTERM, before the pool learns that this process is up."""
        signal.signal(signal.SIGTERM, self._end)
        super().on_loop_start(pid)

    def _end(self, *_: object) -> None:
        self.is_to_end = True
        if self.is_idle:
            raise SystemExit(os.EX_OK)

    def _make_child_methods(self, *arguments: Any) -> None:
        super()._make_child_methods(*arguments)  # type: ignore[misc]  # no stub has it
        wait_for_job = self.wait_for_job

        def wait_unless_ending() -> Any:
            self.is_idle = True  # first: a signal that comes now ends the wait, or is seen here
            try:
                if self.is_to_end:
                    raise SystemExit(os.EX_OK)
                return wait_for_job()
            finally:
                self.is_idle = False

        self.wait_for_job = wait_unless_ending


class AsynPool(asynpool.AsynPool):
    """Celery's pool with these processes."""

    Worker = Worker


class Pool(prefork.TaskPool):
    """A pool that replaces a process that dies while the worker starts.

    Celery would end the whole worker: "Could not start worker processes".
    """

    Pool = AsynPool

    def did_start_ok(self) -> bool:
        return True
