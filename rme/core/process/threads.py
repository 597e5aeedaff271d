"""Threads that do jobs, the last used first: what a thread keeps (connections) stays warm."""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[int], object]
"""Is given the number of the thread that does it. Must not raise."""


class Threads:
    """At most so many threads, started when they are needed; further jobs wait for one."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self.forget()

    def forget(self) -> None:
        """Begin anew: on the other side of a fork there are no threads."""
        self._lock = threading.Lock()
        self._started = 0
        self._idle: list[SimpleQueue[Job]] = []
        self._waiting: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Have a job done: by the thread that ended last, by a new one, or once one is free."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(job)
            elif self._started < self._most:
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
