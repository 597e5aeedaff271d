"""Erasure and export of a person reach into the files."""

import json
import re

import pytest

from messaging.consent import data_export, erasure
from messaging.models import ArchiveErasure, Attempt, Delivery, Event
from messaging.store import archived
from tests.messaging.archive import archive_scene as scene
from tests.messaging.consent.erasure_scene import SECRET, fill, run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def filled(api, org, ada, bob, archive):
    """Archive a message to Ada and one to Ada and Bob, with all that is personal."""
    keys = fill(api, org, ada, bob)
    Event.objects.filter(message_id=keys[1]).update(detail={"ip": SECRET})
    Attempt.objects.filter(delivery_id=keys[1]).update(reason=SECRET)
    Delivery.objects.filter(message_id=keys[1]).update(detail="a detail")
    scene.drop_contents()
    return keys


def stored(archive):
    return b"".join(file.read_bytes() for file in archive.rglob("*.parquet"))


def test_an_export_has_the_archived_messages_too(org, ada, filled):
    before = data_export.export_contact(org.pk, str(ada.pk))
    scene.move()
    assert scene.left() == (0, 0, 0, 0)
    after = data_export.export_contact(org.pk, str(ada.pk))
    for found in (before, after):
        found.pop("exportedAt")
        for each in found["messages"]:
            each.pop("webhook_deliveries")
    assert [each["id"] for each in after["messages"]] == list(filled)
    # The archive has times without the zeros at their end.
    assert _without_zeros(after) == _without_zeros(before)


def _without_zeros(export):
    return json.loads(re.sub(r"\.?0+\+00:00", "+00:00", json.dumps(export)))


def test_an_erased_person_is_hidden_at_once_and_then_in_no_file(
    api, org, ada, bob, filled, archive
):
    scene.move()
    read = [api.get(f"{key}?include=trace") for key in filled]
    assert [SECRET in json.dumps(message) for message in read] == [True, True]
    counts = erasure.erase(org.pk, str(ada.pk)).counts
    assert counts["archive files"] == 1
    hidden = [api.get(f"{key}?include=trace") for key in filled]
    listed = api.call("GET", "/messages").json()["messages"]
    exported = data_export.export_contact(org.pk, str(ada.pk))
    assert SECRET not in json.dumps([hidden[0], listed, exported["messages"]])
    [old] = scene.live()
    scene.move()
    [new] = scene.live()
    assert (ArchiveErasure.objects.count(), new.pk > old.pk, new.messages) == (0, True, 2)
    assert [api.get(f"{key}?include=trace") for key in filled] == hidden
    scene.ArchiveFile.objects.filter(pk=old.pk).update(changed_at="2020-01-01T00:00Z")
    scene.move()
    assert [path.name for path in archive.rglob("*.parquet")] == [new.path.rpartition("/")[2]]
    [record] = archived.archive().of_contact(org.pk, str(bob.pk))
    own = {row.contact_id: row for row in record.deliveries}
    assert (own[str(bob.pk)].detail, own[str(ada.pk)].detail) == ("a detail", None)
    assert own[str(bob.pk)].address == bob.email
    assert own[str(ada.pk)].address is None


def test_an_erasure_while_messages_are_moved_is_in_the_file(org, ada, bob, filled, archive):
    """What was read before the erasure is not handed over after it."""
    from messaging.archive import hand_over, parquet, records
    from messaging.archive.hand_over import MovedMessages
    from rme.core import ids

    keys = [ids.parse(key) for key in filled]
    found, versions = records.load(keys)
    erasure.erase(org.pk, str(ada.pk))
    batch = MovedMessages(keys, versions)
    assert hand_over.write(org.pk, parquet.table_of(found), erased=[], batches=[batch]) is None
    scene.move()
    [record] = archived.archive().of_contact(org.pk, str(bob.pk))
    assert {row.address for row in record.deliveries} == {None, bob.email}


def test_rewritten_file_is_discarded_if_an_erasure_came_in_between(org, ada, bob, filled, archive):
    from messaging.archive import contact_files, hand_over

    scene.move()
    [file] = scene.live()
    table = contact_files.read(file)
    erasure.erase(org.pk, str(ada.pk))
    assert hand_over.write(org.pk, table, erased=[], replaced=file) is None
    assert [each.pk for each in scene.live()] == [file.pk]


def test_the_command_counts_files(org, ada, filled):
    scene.move()
    shown = run("erase_contact", str(ada.pk), organization=org.pk)
    assert "archive files         1" in shown
    assert ArchiveErasure.objects.count() == 0
