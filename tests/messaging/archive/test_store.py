"""An S3-compatible store over the wire."""

import urllib.request

import pytest
from moto.server import ThreadedMotoServer

from messaging.archive import stores
from messaging.models import ArchiveFile
from rme.core.environment import archive_settings
from tests.messaging.archive import archive_scene as scene
from tests.service import free_port

ENV = {
    "ARCHIVE_URL": "s3://old-messages/rme/2026",
    "ARCHIVE_S3_KEY_ID": "key",
    "ARCHIVE_S3_SECRET": "a-secret",
}


@pytest.fixture(scope="module")
def server():
    """Run moto's server, and return its address."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server, settings):
    """Keep the archive in a bucket."""
    settings.ARCHIVE = archive_settings.read({**ENV, "ARCHIVE_S3_ENDPOINT": server})
    settings.ARCHIVE_SECONDS = 60.0
    bucket = urllib.request.Request(f"{server}/old-messages", method="PUT")
    urllib.request.urlopen(bucket).close()


@pytest.mark.django_db
def test_messages_are_archived_in_a_bucket_and_read_from_it(api, org, ada, bucket, settings):
    keys = scene.send(org, [ada], 3)
    before = [api.get(key) for key in keys]
    history = api.call("GET", "/messages").json()
    scene.move()
    assert scene.left() == (0, 0, 0, 0)
    assert [api.get(key) for key in keys] == before
    assert api.call("GET", "/messages").json() == history
    [file] = scene.live()
    stores.delete(["acme/nothing.parquet"])
    found = settings.ARCHIVE
    settings.ARCHIVE = found._replace(url="s3://old-messages")
    assert stores.digest_of(stores.read(f"rme/2026/{file.path}")) == file.digest
    settings.ARCHIVE = found
    stores.delete([file.path, file.path])
    assert api.call("GET", f"/messages/{keys[0]}").status_code == 503


@pytest.mark.django_db
def test_unreachable_store_answers_503_and_keeps_its_messages(api, org, ada, settings, archive):
    [key] = scene.send(org, [ada])
    scene.move()
    env = {**ENV, "ARCHIVE_S3_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    settings.ARCHIVE = archive_settings.read(env)
    settings.ARCHIVE_SECONDS = 0.5
    answer = api.call("GET", f"/messages/{key}")
    assert (answer.status_code, "a-secret" in answer.content.decode()) == (503, False)
    assert "a-secret" not in repr(settings.ARCHIVE)
    assert ArchiveFile.objects.count() == 1
