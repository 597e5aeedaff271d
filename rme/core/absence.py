"""Whether a service that this process calls is away, so that not every caller waits for it."""

import threading
import time
from collections.abc import Callable


class Absence:
    """The absence of one service. Thread-safe.

    After a failure one caller for each pause may try the service; the others do without it at once.
    """

    def __init__(self, pause: float, clock: Callable[[], float] | None = None) -> None:
        """Begin with a service that is there. `pause` is in seconds."""
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._until = 0.0

    @property
    def is_noted(self) -> bool:
        """Return whether the last call that is known failed."""
        return self._until > 0.0

    def may_try(self, longest: float = 0.0) -> bool:
        """Return whether this caller may call the service. If it is away, nobody else may until the
        call, which takes `longest` seconds at most, and a pause are over.
        """
        if not self._until:
            return True
        with self._lock:
            now = self._now()
            if now < self._until:
                return False
            if self._until:
                self._until = now + longest + self._pause
            return True

    def note_failure(self) -> bool:
        """Note that the service did not answer; return whether that is new."""
        with self._lock:
            is_new = not self._until
            self._until = self._now() + self._pause
        return is_new

    def note_answer(self) -> bool:
        """Note that the service answered; return whether it was away."""
        if not self._until:
            return False
        with self._lock:
            was_away, self._until = self._until > 0.0, 0.0
        return was_away

    def _now(self) -> float:
        return self._clock() if self._clock else time.monotonic()
