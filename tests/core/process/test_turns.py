"""A process's turn: one thread at a time, and none waits for a thread that has ended."""

import threading
import time

from rme.core.process.turns import ThreadTurn
from tests.stopwatch import Stopwatch


def test_one_thread_at_a_time_has_the_turn():
    turn, inside, most = ThreadTurn(), [], []

    def run():
        for _ in range(50):
            with turn:
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0002)
                inside.pop()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200


def test_turn_of_an_ended_thread_is_free():
    turn = ThreadTurn()
    left_behind = threading.Thread(target=turn.__enter__)
    left_behind.start()
    left_behind.join()
    with Stopwatch() as watch:
        assert turn.wait_until_free(30)
        with turn:
            pass
    assert watch.seconds < 5


def test_thread_does_not_wait_for_its_own_abandoned_turn():
    turn = ThreadTurn()
    turn.__enter__()  # and an exception comes before the block
    with Stopwatch() as watch:
        assert turn.wait_until_free(30)
        with turn:
            pass
    assert watch.seconds < 5


def test_waiting_for_a_turn_ends_with_the_time():
    turn, go = ThreadTurn(), threading.Event()

    def hold():
        with turn:
            go.wait(30)

    holding = threading.Thread(target=hold)
    holding.start()
    assert not turn.wait_until_free(0.2)
    go.set()
    assert turn.wait_until_free(30)
    holding.join()
