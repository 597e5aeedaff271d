"""The absence of a service: who may try it, and when a change is new."""

import pytest

from rme.core.absence import Absence
from tests.threads import at_once


class Clock:
    """A clock that stands until a test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_service_that_never_failed_may_be_called_by_all():
    absence = Absence(1.0)
    assert [absence.may_try() for _ in range(3)] == [True] * 3
    assert not absence.note_answer()
    assert not absence.is_noted


def test_failure_stops_calls_for_a_pause_and_then_allows_one_trial(clock):
    absence = Absence(2.0, clock)
    assert absence.note_failure()
    assert absence.is_noted
    assert not absence.may_try()
    clock.now += 2.0
    assert [absence.may_try() for _ in range(3)] == [True, False, False]
    clock.now += 2.0  # the trial has not ended: another caller takes its place
    assert [absence.may_try() for _ in range(2)] == [True, False]


def test_long_trial_excludes_others_until_it_ends(clock):
    absence = Absence(2.0, clock)
    absence.note_failure()
    clock.now += 2.0
    assert absence.may_try(longest=5.0)
    clock.now += 6.9
    assert not absence.may_try()
    clock.now += 0.1
    assert absence.may_try()


def test_second_failure_is_not_new_and_begins_another_pause(clock):
    absence = Absence(2.0, clock)
    assert [absence.note_failure(), absence.note_failure()] == [True, False]
    clock.now += 1.5
    absence.note_failure()
    clock.now += 1.5
    assert not absence.may_try()


def test_answer_ends_the_absence_once(clock):
    absence = Absence(2.0, clock)
    absence.note_failure()
    assert [absence.note_answer(), absence.note_answer()] == [True, False]
    assert [absence.may_try() for _ in range(3)] == [True] * 3
    assert absence.note_failure()


def test_one_of_several_simultaneous_threads_may_try(clock):
    absence = Absence(2.0, clock)
    absence.note_failure()
    clock.now += 2.0
    assert sorted(at_once(absence.may_try, 20)) == [False] * 19 + [True]
