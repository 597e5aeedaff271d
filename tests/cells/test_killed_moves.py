"""Moves that are killed at each of their steps: who ends them, and that no row is lost."""

from contextlib import contextmanager, nullcontext
from datetime import timedelta

import orjson
import psycopg
import pytest
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from rme.cells import abandoned, calls, moving, pauses, signatures, tasks
from rme.core.db import clock, commits
from rme.tenants.models import Move, Placement
from tests.cells.two_databases import counts, move, phase, phases, to_us
from tests.rest import message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def kill(mover):
    """End all connections of a move, as the kernel does for a process that is killed."""
    with psycopg.connect(project.MOVE_DATABASE_URL) as server:
        for each in (mover.source, mover.lock, mover.target):
            server.execute("SELECT pg_terminate_backend(%s, 10000)", [each.info.backend_pid])


KILLED = {
    "copied": (("", "ARRIVING"), ("", "ARRIVING")),
    "leaving": (("LEAVING", "ARRIVING"), ("", "ARRIVING")),
    "paused": (("PAUSED", "ARRIVING"), ("", "ARRIVING")),
    "ready": (("PAUSED", "PAUSED"), ("", "ARRIVING")),
    "switched": (("MOVED", "PAUSED"), ("MOVED", "")),
    "serves": (("MOVED", ""), ("MOVED", "")),
}
"""What a move says before it is killed: the phases here and there then, and once jobs have run."""
REPEATED = ("ready", "switched")
"""After the others the command finds the same as after one of these."""


@pytest.mark.parametrize("word", KILLED)
def test_killed_move_ends_by_itself_and_continues_when_repeated(us, scene, word):
    api, person = scene

    def say(text):
        if text.split()[0].rstrip(":") == word or word in text:
            kill(mover)

    with pytest.raises(psycopg.Error):
        with moving.opened(to_us(), "acme", say) as mover:
            mover.move(moving.MoveLimits())
            mover.abort()  # after the last step there is one statement more
    before, after = KILLED[word]
    assert phases(us) == before
    tasks.settle_pauses()
    with us():
        settle(us.home)
    assert phases(us) == after
    with us() if after[0] else nullcontext():
        assert api.send(message(person)).status_code == 202
    if word in REPEATED:
        move()
        assert phases(us) == ("MOVED", "")
        assert Move.objects.get().step == "DONE"
        here = counts()
        with us():
            there = counts()
        assert there == here if word == "ready" else there["messaging_message"] == 5


def settle(home):
    """Let this cell ask the cell that was left, over its URL, what became of pauses."""

    def ask(cell, path, body):
        assert cell == "eu"
        text = orjson.dumps(body)
        header = signatures.sign(project.CELL_SECRET, f"POST {path}", text)
        with home():
            answer = Client().post(
                path, text, "application/json", headers={"Authorization": header}
            )
        assert answer.status_code == 200
        return answer.json()

    Placement.objects.update(since=clock.now() - timedelta(seconds=2))
    return pauses.settle(ask)


def test_target_workers_end_the_pause_of_a_dead_move_without_source_workers(us, scene):
    """A question about a pause ends it first if its move is dead, whoever asks."""

    def say(text):
        if text.startswith("ready"):
            with us():
                assert settle(us.home) == []  # the move lives: nothing is decided
            assert phases(us) == ("PAUSED", "PAUSED")
            with us(), away():
                assert settle(us.home) == []  # nobody knows: nothing is decided
            kill(mover)

    @contextmanager
    def away():
        def refuse(cell, path, body):
            raise calls.CellNotReached(cell)

        assert pauses.settle(refuse) == []
        yield

    with pytest.raises(psycopg.Error):
        with moving.opened(to_us(), "acme", say) as mover:
            mover.move(moving.MoveLimits())
    with us():
        assert settle(us.home) == []
    assert phases(us) == ("", "ARRIVING")


def test_target_takes_over_only_a_move_waiting_for_an_unreachable_cell(us, scene, settings):
    lost = ("move_organization", "acme", "--to", "us", "--left-cell-is-lost")

    def take_over(why):
        with us(), pytest.raises(CommandError, match=why):
            call_command(*lost)

    def say(text):
        if text == "paused":
            take_over("does not wait here for a switch")
        if text == "switched":
            with us(), pytest.raises(pauses.NotTakenOver, match="eu answers: its journal decides"):
                pauses.take_over("acme", lambda *_: {})
            kill(mover)

    with pytest.raises(CommandError, match="in the cell that the organization moves to"):
        call_command(*lost)
    with pytest.raises(psycopg.Error):
        with moving.opened(to_us(), "acme", say) as mover:
            mover.move(moving.MoveLimits())
    assert phases(us) == ("MOVED", "PAUSED")
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:1"}
    with us():
        call_command(*lost)
        assert phase() == ""
    take_over("does not wait here")
    api, person = scene
    with us():
        assert api.send(message(person)).status_code == 202


def test_only_the_pause_with_compared_rows_can_be_switched(us, scene):
    with moving.opened(to_us(), "acme", print) as mover:
        journal = mover.journal
        journal.begin(mover.copier.oldest())
        first = journal.begin_pause()
        assert journal.write_nothing(first)
        assert phase() == "PAUSED"
        assert journal.give_up_pause()
        second = journal.begin_pause()
        assert not journal.switch(first)
        assert not journal.write_nothing(first)
        assert phase() == "LEAVING"
        assert journal.switch(second)
        assert not journal.give_up_pause()
    assert phase() == "MOVED"
    for asked, confirmed in [([first], False), ([first, second], True)]:
        with CaptureQueriesContext(connection) as queries:
            states = pauses.states_of({"pauses": [str(each) for each in asked]})
        assert (commits.CONFIRM_EARLIER in [each["sql"] for each in queries]) == confirmed
    assert states == {str(first): "GIVEN_UP", str(second): "SWITCHED"}


def test_move_that_lost_its_lock_cannot_switch(us, scene):
    """Dead is who has lost the lock, even if the move's other connections stand."""
    api, person = scene

    def say(text):
        if text != "paused":
            return
        assert abandoned.end_abandoned_pauses() == []  # it lives
        assert phase() == "PAUSED"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [mover.lock.info.backend_pid])
        tasks.settle_pauses()
        assert phase() == ""
        with pytest.raises(CommandError, match="Another process"):
            move()  # this one can still write in the target

    with pytest.raises((psycopg.Error, moving.TakesTooLong)):
        with moving.opened(to_us(), "acme", say) as mover:
            mover.move(moving.MoveLimits())
    assert phase() == ""
    assert api.send(message(person)).status_code == 202
    move()
    here = counts()
    with us():
        assert (phase(), counts()) == ("", here)
