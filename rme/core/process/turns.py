"""The turn of a process: only one of its threads runs a task or a poll at a time."""

import threading
from time import monotonic
from types import TracebackType
from typing import Self

LOOK_SECONDS = 1.0
"""How often a waiting thread checks whether the holder still runs."""


class ThreadTurn:
    """A lock that knows its holder, so that nobody waits for a thread that has ended.

    A signal may raise an exception between any two steps of a thread, even right after it took a
    lock. A turn that was lost in this way is free again: for other threads once its holder has
    ended, and for the holder itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._holder: threading.Thread | None = None

    def __enter__(self) -> Self:
        with self._changed:
            while self._is_held():
                self._changed.wait(LOOK_SECONDS)
            self._holder = threading.current_thread()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._holder = None
            self._changed.notify()

    def wait_until_free(self, seconds: float) -> bool:
        """Wait until no other thread has the turn; return False after `seconds`."""
        until = monotonic() + seconds
        with self._changed:
            while self._is_held() and monotonic() < until:
                self._changed.wait(LOOK_SECONDS)
            return not self._is_held()

    def _is_held(self) -> bool:
        holder = self._holder
        return not (holder is None or holder is threading.current_thread()) and holder.is_alive()
