"""The job is killed wherever it may be: nothing is lost, nothing is there twice."""

import os
import subprocess
import sys
from urllib.parse import quote

import pytest
from django.db import connection

from messaging.archive import erasures
from messaging.consent import erasure
from messaging.models import ArchiveErasure, ArchiveFile, Delivery, Message
from rme.core.db import clock
from tests.messaging.archive import archive_scene as scene
from tests.service import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def killed(archive):
    """Return a function that runs the job in a process and kills it when a function returns."""
    at = connection.settings_dict
    host, port = quote(at["HOST"] or "", safe=""), at["PORT"] or ""
    env = os.environ | {
        "DATABASE_URL": f"postgres://{at['USER']}@{host}:{port}/{at['NAME']}",
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "ARCHIVE_URL": archive.as_uri(),
    }
    command = [sys.executable, "-m", "tests.messaging.archive.killed_job"]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:

        def run(function):
            process.stdin.write(f"{function}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield run
        process.stdin.close()


def read(api, keys):
    """Return messages as they are read, by id and in the history."""
    listed = api.call("GET", "/messages").json()["messages"]
    return [api.get(f"{key}?include=trace") for key in keys], listed


def test_message_is_in_one_place_wherever_the_job_is_killed(api, org, ada, archive, killed):
    keys = scene.send(org, [ada], 4)
    Delivery.objects.filter(message_id=keys[2]).update(status="UNKNOWN", due_at=None)
    assert killed("nothing") == "ended"  # three of them
    Delivery.objects.filter(message_id=keys[2]).update(status="DELIVERED")
    before = read(api, keys)
    assert len(before[1]) == 4
    for function, tables, states in [
        ("hand_over._announce", 1, ["LIVE", "WRITING"]),  # known, and not written
        ("stores.write", 1, ["LIVE", "REMOVED", "WRITING"]),  # written, by the store
        ("ended.delete", 1, ["LIVE", "REMOVED", "REMOVED", "WRITING"]),  # in the transaction
        ("moving._move", 0, ["LIVE", "REMOVED", "REMOVED", "REMOVED", "REMOVED"]),  # after it
    ]:
        assert killed(function) == "killed", function
        assert (Message.objects.count(), scene.states()) == (tables, states), function
        assert read(api, keys) == before, function
    ArchiveFile.objects.update(changed_at=clock.now().replace(year=2020))
    assert killed("nothing") == "ended"
    [file] = scene.live()
    assert (file.messages, scene.states()) == (4, ["LIVE"])
    assert list(archive.rglob("*.parquet")) == [archive / file.path]
    assert read(api, keys) == before


def test_erasure_continues_wherever_the_job_is_killed(api, org, ada, bob, archive, killed):
    keys = scene.send(org, [ada, bob], 4)
    assert killed("nothing") == "ended"
    [old] = scene.live()
    erasure.erase(org.pk, str(ada.pk))
    hidden = read(api, keys)
    for function, erasures_left in [
        ("hand_over._announce", 1),
        ("stores.write", 1),
        ("rewriting._rewrite", 1),
    ]:
        assert killed(function) == "killed", function
        assert ArchiveErasure.objects.count() == erasures_left
        assert read(api, keys) == hidden, function
    ArchiveFile.objects.update(changed_at=clock.now().replace(year=2020))
    assert killed("nothing") == "ended"
    assert (ArchiveErasure.objects.count(), scene.states()) == (0, ["LIVE"])
    assert not (archive / old.path).exists()
    assert erasures.pending(org.pk) == {}
    assert read(api, keys) == hidden
