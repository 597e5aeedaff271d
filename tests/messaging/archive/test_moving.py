"""Moving messages into files: what ended and is old, once, and nothing that changes meanwhile."""

import hashlib
from datetime import timedelta

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from messaging.archive import contact_files, hand_over, job, moving, parquet, records
from messaging.archive.hand_over import MovedMessages
from messaging.models import ArchiveFile, ArchiveProgress, Delivery, Event, Message
from messaging.reports import checks
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.messaging.archive import archive_scene as scene
from tests.messaging.consent.erasure_scene import run
from tests.rest import message, work

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_file_holds_a_day_of_an_organization(org, ada, bob, archive):
    keys = scene.send(org, [ada, bob], 3)
    other = factories.organization("other")
    factories.welcome(other)
    scene.send(other, [factories.contact(other)])
    scene.move()
    files = {file.organization_id: file for file in scene.live()}
    file = files["acme"]
    content = (archive / file.path).read_bytes()
    table = pq.read_table(archive / file.path)
    moment = ids.moment(ids.parse(keys[0]))
    assert (len(files), file.path.startswith(f"acme/{moment:%Y/%m/%d}/")) == (2, True)
    assert table.column("id").to_pylist() == keys
    assert (str(file.first_id), str(file.last_id), file.messages) == (keys[0], keys[2], 3)
    assert (file.size, file.digest) == (len(content), hashlib.sha256(content).hexdigest())
    [delivery] = table.column("deliveries")[1].as_py()
    assert (delivery["contact_id"], delivery["status"]) == (str(bob.pk), "DELIVERED")
    assert scene.left() == (0, 0, 0, 0)
    assert "hello" not in str(table.to_pylist())  # no content


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "UNKNOWN"},
        {"status": "SCHEDULED"},
        {"status": "SENT", "due_at": clock.iso},  # may fall back
        {"updated_at": clock.iso},
    ],
    ids=["unknown", "scheduled", "fallback", "changed"],
)
def test_unfinished_message_is_not_archived(org, ada, archive, fields):
    keys = scene.send(org, [ada], 2)
    late = clock.now() + timedelta(days=50)
    given = {name: late if callable(value) else value for name, value in fields.items()}
    Delivery.objects.filter(message_id=keys[0]).update(**given)
    scene.move()
    assert [str(row.pk) for row in Message.objects.all()] == [keys[0]]
    assert scene.live()[0].messages == 1


def test_message_with_content_or_late_event_is_not_archived(api, org, ada, archive):
    scene.send(org, [ada])
    Event.objects.filter(type="delivered").update(at=clock.now() + timedelta(days=50))
    api.send(message(ada))
    work()
    scene.move()
    assert (Message.objects.count(), scene.live()) == (2, [])


def test_message_that_ends_late_joins_the_file_of_its_day(api, org, ada, archive):
    keys = scene.send(org, [ada], 3)
    before = [api.get(key) for key in keys]
    Delivery.objects.filter(message_id=keys[1]).update(status="UNKNOWN", due_at=None)
    scene.move()
    [first] = scene.live()
    Delivery.objects.filter(message_id=keys[1]).update(status="DELIVERED")
    scene.move()
    [file] = scene.live()
    assert (first.messages, file.messages, file.pk > first.pk) == (2, 3, True)
    assert [api.get(key) for key in keys] == before
    assert (archive / first.path).exists()  # for calls that read the index before
    ArchiveFile.objects.update(changed_at=clock.now() - timedelta(hours=1))
    scene.move()
    assert not (archive / first.path).exists()
    assert scene.states() == ["LIVE"]


def test_large_days_have_several_files(org, ada, archive, monkeypatch):
    monkeypatch.setattr(moving, "FILE", 3)
    monkeypatch.setattr(moving, "READ", 2)
    monkeypatch.setattr(parquet, "GROUP", 2)
    keys = scene.send(org, [ada], 8)
    scene.move()
    assert sorted(file.messages for file in scene.live()) == [2, 3, 3]
    scene.move()
    assert len(scene.live()) == 3
    assert run("archive", "list").count("acme/") == 3
    assert run("archive", "verify").startswith("3 files, 8 messages, ")
    assert scene.left() == (0, 0, 0, 0)
    assert len(keys) == 8


def change_status(keys):
    Delivery.objects.filter(message_id=keys[0]).update(detail="changed")


def add_event(keys):
    event = Event.objects.filter(message_id=keys[0]).first()
    event.pk = ids.new_id()
    event.save(force_insert=True)


def change_event(keys):
    Event.objects.filter(message_id=keys[0]).update(detail={"ip": "changed"})


def change_message(keys):
    Message.objects.filter(pk=keys[0]).update(metadata=None)


@pytest.mark.parametrize("change", [change_status, add_event, change_event, change_message])
def test_message_changed_after_reading_stays_in_the_table(org, ada, archive, change):
    keys = [ids.parse(key) for key in scene.send(org, [ada], 2)]
    found, versions = records.load(keys)
    change(keys)
    before = scene.left()
    table, batch = parquet.table_of(found), MovedMessages(keys, versions)
    assert hand_over.write(org.pk, table, erased=[], batches=[batch]) is None
    assert (scene.left(), scene.states()) == (before, ["REMOVED"])
    scene.move()
    assert (scene.left(), scene.live()[0].messages) == ((0, 0, 0, 0), 2)


def test_failing_store_is_reported_and_loses_nothing(org, ada, archive):
    archive.parent.mkdir(exist_ok=True)
    scene.send(org, [ada])
    before = scene.left()
    archive.mkdir()
    (archive / "acme").write_text("a file where a folder has to be")
    scene.move()
    assert scene.left() == before
    progress = ArchiveProgress.objects.get()
    assert progress.failure == "a file could not be written: GenericError"
    check = checks.run()["archive"]
    assert check.status == "degraded"
    assert check.detail == f"its store fails: {progress.failure}"
    (archive / "acme").unlink()
    scene.move()
    assert scene.left() == (0, 0, 0, 0)
    assert scene.states() == ["LIVE", "REMOVED"]
    assert checks.run()["archive"].status == "ok"


def test_archive_job_running_late_is_reported(org, archive):
    job.run(now=clock.now())
    assert checks.run()["archive"].status == "ok"
    late = clock.now() - timedelta(days=2)
    ArchiveProgress.objects.update(up_to_date_at=late)
    detail = checks.run()["archive"].detail
    assert detail == f"is behind since {late:%Y-%m-%d %H:%M} UTC"


def test_a_damaged_file_is_found(org, ada, archive):
    scene.send(org, [ada])
    scene.move()
    [file] = scene.live()
    content = (archive / file.path).read_bytes()
    (archive / file.path).write_bytes(content[:-1] + b"?")
    with pytest.raises(CommandError, match="1 files are not as they were written"):
        call_command("archive", "verify")
    with pytest.raises(contact_files.stores.StoreFailed, match="is not as it was written"):
        contact_files.read(file)


def test_old_files_are_deleted(settings, org, ada, archive):
    scene.send(org, [ada])
    scene.move()
    [file] = scene.live()
    settings.ARCHIVE_RETENTION_DAYS = 99
    scene.move()
    assert (scene.live(), scene.states()) == ([], ["REMOVED"])
    ArchiveFile.objects.update(changed_at=clock.now() - timedelta(hours=1))
    scene.move()
    assert (scene.states(), (archive / file.path).exists()) == ([], False)


def test_nothing_is_moved_without_an_archive(org, ada):
    scene.send(org, [ada])
    scene.move()
    assert Message.objects.count() == 1
    assert "archive" not in checks.run()
    with pytest.raises(CommandError, match="ARCHIVE_URL is not set"):
        call_command("archive", "list")
