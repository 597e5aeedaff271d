"""Threads that do jobs: the last used first, at most so many, and jobs that wait for one."""

import threading

from rme.core.process.threads import Threads


def test_the_thread_that_ended_last_is_used_first():
    threads, used = Threads(4, "test"), []
    for _ in range(20):
        done = threading.Event()
        idle = threading.Event()

        def job(number, done=done):
            used.append(number)
            done.set()

        threads.submit(job)
        assert done.wait(5)
        while not threads._idle:
            idle.wait(0.001)
    assert used == [0] * 20


def test_jobs_that_find_no_thread_wait_for_one():
    threads, go, used = Threads(2, "test"), threading.Event(), []
    ended = threading.Semaphore(0)

    def job(number):
        go.wait(5)
        used.append(number)
        ended.release()

    for _ in range(6):
        threads.submit(job)
    assert used == []
    go.set()
    for _ in range(6):
        assert ended.acquire(timeout=5)
    assert set(used) == {0, 1}
    assert len(used) == 6
