"""Waiting before what ended is started again."""

import signal

from rme.run.backoff import LONGEST_SECONDS, STEADY_SECONDS, RestartBackoff, ending, sentence


def test_waits_double_up_to_a_bound_and_never_end():
    backoff = RestartBackoff("web")
    waits = [backoff.failed(0.1) for _ in range(2000)]
    bounds = [min(LONGEST_SECONDS, 0.5 * 2**n) for n in range(10)] + [LONGEST_SECONDS] * 1990
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert len(set(waits[10:])) > 1900  # several that died together do not come back together
    assert backoff.failures == 2000


def test_steady_run_resets_the_backoff():
    backoff = RestartBackoff("web")
    for _ in range(9):
        backoff.failed(0.1)
    assert backoff.failed(STEADY_SECONDS) <= 0.5
    assert backoff.failures == 1


def test_end_of_a_process_is_described():
    assert ending(3) == "exit code 3"
    assert ending(-signal.SIGKILL) == "signal 9, SIGKILL"
    assert ending(-40) == "signal 40"
    assert sentence("web", ending(3), 1.26, 1, 0.44) == (
        "web ended (exit code 3) after 1.3 s; it is started again in 0.4 s."
    )
    assert sentence("web", ending(-9), 1.26, 4, 2.0) == (
        "web ended (signal 9, SIGKILL) after 1.3 s, 4 times in a row; it is started again in 2.0 s."
    )
