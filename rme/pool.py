"""Celery's pool of processes, which outlives what happens while it starts."""

from celery.concurrency import prefork


class Pool(prefork.TaskPool):
    """Replace a process that dies also while the worker starts.

    Celery ends the whole worker then: "Could not start worker processes".
    """

    def did_start_ok(self) -> bool:
        return True
