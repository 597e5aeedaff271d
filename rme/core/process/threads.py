"""A pool of threads that prefers the thread used last, whose connections are still open."""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[int], object]
"""Called with the number of the thread that runs it. Must not raise."""


class Threads:
    """A bounded number of threads, started when they are needed; further jobs wait."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self.forget()

    def forget(self) -> None:
        """Start with no threads and no jobs, as after a fork."""
        self._lock = threading.Lock()
        self._started = 0
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Run a job in the thread that was used last, in a new one, or once one is free."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._limit:
                number, self._started = self._started, self._started + 1
                inbox: SimpleQueue[Job] = SimpleQueue()
                inbox.put(job)
                threading.Thread(
                    target=self._work,
                    args=(inbox, number),
                    name=f"{self._name} {number}",
                    daemon=True,
                ).start()
            else:
                self._waiting.append(job)

    def _work(self, inbox: "SimpleQueue[Job]", number: int) -> None:
        while True:
            inbox.get()(number)
            with self._lock:
                if self._waiting:
                    inbox.put(self._waiting.popleft())
                else:
                    self._idle.append(inbox)
