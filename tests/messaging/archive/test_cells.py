"""The archive of an organization that moves: only the cell that serves it works on its files."""

from datetime import timedelta

import pytest
from django.db import connection

from messaging.archive import hand_over, parquet, records
from messaging.archive.hand_over import MovedMessages
from messaging.consent import erasure
from messaging.models import ArchiveErasure, ArchiveFile
from rme.core import ids
from rme.core.db import clock
from rme.tenants.models import Placement
from tests.cells.placement_scene import cell, place
from tests.messaging.archive import archive_scene as scene

__all__ = ["cell"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("cell")]
Phase = Placement.Phase


def rows():
    return sorted(ArchiveFile.objects.values_list("path", "state")), ArchiveErasure.objects.count()


def files(archive):
    return sorted(path.name for path in archive.rglob("*.parquet"))


@pytest.fixture
def pending(org, ada, archive, settings):
    """Archive messages; one file is to be rewritten, one was replaced, one is unfinished."""
    for _ in range(2):
        scene.send(org, [ada])
        scene.move()
    scene.send(org, [ada])
    [file] = scene.live()
    erasure.erase(org.pk, str(ada.pk))
    copy = {"organization_id": org.pk, "first_id": file.first_id, "last_id": file.last_id}
    copy |= {"messages": 1, "size": 1, "digest": "", "version": 1, "contacts": []}
    ArchiveFile.objects.create(path="acme/unfinished", state="WRITING", **copy)
    ArchiveFile.objects.update(changed_at=clock.now() - timedelta(hours=1))
    return rows(), files(archive), scene.left()


@pytest.mark.parametrize("phase", Phase)
def test_archive_of_a_moving_organization_is_left_alone(org, pending, archive, phase, settings):
    settings.ARCHIVE_RETENTION_DAYS = 99
    place(org, phase)
    scene.move()
    assert (rows(), files(archive), scene.left()) == pending


def test_erasures_run_in_the_cell_that_serves_the_organization(org, pending, archive):
    Placement.objects.create(organization_id="other", phase="MOVED", cell="us")
    scene.move()
    (_, erasures), before = rows(), pending[1]
    assert (erasures, scene.left()) == (0, (0, 0, 0, 0))
    assert files(archive) != before
    assert scene.states() == ["LIVE", "REMOVED", "REMOVED", "REMOVED"]


def test_messages_stay_if_the_organization_is_paused_while_its_file_is_written(org, ada, archive):
    """The row of the file was copied: the cell that the organization is in removes the file."""
    keys = [ids.parse(key) for key in scene.send(org, [ada], 2)]
    found, versions = records.load(keys)
    before = scene.left()

    def pause_once_announced(execute, sql, *arguments):
        result = execute(sql, *arguments)
        if sql.startswith(f'INSERT INTO "{ArchiveFile._meta.db_table}"'):
            place(org, Phase.PAUSED)  # committed with the row, before the file is written
        return result

    table, batch = parquet.table_of(found), MovedMessages(keys, versions)
    with connection.execute_wrapper(pause_once_announced):
        for _ in range(2):  # the second time no file is announced
            assert hand_over.write(org.pk, table, erased=[], batches=[batch]) is None
            assert (scene.left(), scene.states()) == (before, ["WRITING"])
    Placement.objects.all().delete()
    scene.move()
    assert scene.states() == ["LIVE", "REMOVED"]
