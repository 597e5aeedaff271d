"""A folder that somebody else has filled leads to no other place of the machine."""

import os
import socket

import pytest
from django.core.management import CommandError, call_command

from messaging.content.files import folders
from messaging.content.files.archives import COUNT_LIMIT, FILE_LIMIT
from messaging.content.files.file_types import FilesRefused
from messaging.models import TemplateVersion
from tests import factories

pytestmark = pytest.mark.django_db
PATH = "order/en_US.email.liquid"
SECRET = "---\ncategory: TRANSACTIONAL\nsubject: Key\n---\nroot's key\n"
LINK = "is a link or not a regular file"


@pytest.fixture
def org():
    row = factories.organization()
    factories.template(row, name="order", html="<p>Ours</p>")
    return row


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "repository"
    (found / "order").mkdir(parents=True)
    return found


@pytest.fixture
def outside(tmp_path):
    found = tmp_path / "elsewhere"
    found.mkdir()
    (found / "en_US.email.liquid").write_text(SECRET)
    return found


def command(direction, folder, *options):
    call_command("templates", direction, str(folder), "--organization", "acme", *options)


def refusal(direction, folder, *options):
    with pytest.raises(CommandError) as found:
        command(direction, folder, *options)
    return str(found.value)


def hidden_in(folder, outside, way):
    """Put a way out of the folder in it."""
    secret, inner = outside / "en_US.email.liquid", folder / "order"
    match way:
        case "a link":
            (folder / PATH).symlink_to(secret)
        case "a relative link":
            (folder / PATH).symlink_to("../../elsewhere/en_US.email.liquid")
        case "a link to a link":
            (folder / "way").symlink_to(outside)
            (folder / PATH).symlink_to("../way/en_US.email.liquid")
        case "a folder that is a link":
            inner.rmdir()
            inner.symlink_to(outside)
        case "a link to nothing yet":
            secret.unlink()
            (folder / PATH).symlink_to(secret)


WAYS = ["a link", "a relative link", "a link to a link", "a link to nothing yet"]


@pytest.mark.parametrize("way", WAYS)
def test_push_reads_nothing_outside_of_the_folder(org, folder, outside, way):
    hidden_in(folder, outside, way)
    assert refusal("push", folder).startswith(f"{PATH}: {LINK}")
    assert TemplateVersion.objects.count() == 1


def test_push_ignores_a_linked_folder(org, folder, outside):
    hidden_in(folder, outside, "a folder that is a link")
    assert refusal("push", folder).startswith("There is no file that ends with")


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["", "dry run"])
@pytest.mark.parametrize("way", [*WAYS, "a folder that is a link"])
def test_pull_reads_and_writes_nothing_outside_of_the_folder(org, folder, outside, way, options):
    hidden_in(folder, outside, way)
    before = {path.name: path.read_text() for path in outside.iterdir()}
    said = refusal("pull", folder, *options)
    assert said.startswith(PATH)
    assert "rme doesn't follow links" in said
    assert {path.name: path.read_text() for path in outside.iterdir()} == before


def test_pull_writes_to_no_hard_link(org, folder, outside):
    os.link(outside / "en_US.email.liquid", folder / PATH)
    command("pull", folder)
    assert (outside / "en_US.email.liquid").read_text() == SECRET
    assert "Ours" in (folder / PATH).read_text()
    assert [path.name for path in (folder / "order").iterdir()] == ["en_US.email.liquid"]


def test_the_folder_itself_may_be_a_link(org, folder, tmp_path):
    (tmp_path / "mine").symlink_to(folder)
    command("pull", tmp_path / "mine")
    assert "Ours" in (folder / PATH).read_text()
    command("push", tmp_path / "mine")
    command("pull", tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / PATH).is_file()


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_special_file_is_refused_without_waiting(folder, kind, monkeypatch):
    path = folder / PATH
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(folder / "order")  # addresses of sockets are short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    with pytest.raises(FilesRefused, match=LINK):
        folders.read(folder, PATH)


def test_files_are_bounded(folder):
    (folder / PATH).write_bytes(b"x" * (FILE_LIMIT + 1))
    with pytest.raises(FilesRefused, match="is larger than"):
        folders.files(folder)
    (folder / PATH).unlink()
    for number in range(COUNT_LIMIT + 1):
        (folder / f"{number}.liquid").touch()
    with pytest.raises(FilesRefused, match="has more than 1,000 files"):
        folders.files(folder)


@pytest.mark.parametrize("path", ["../a.liquid", "/etc/a.liquid", "a/../../b.liquid", "a//b", ""])
def test_path_leading_outside_is_rejected(folder, path):
    for call in (lambda: folders.read(folder, path), lambda: folders.write(folder, path, b"x")):
        with pytest.raises(FilesRefused, match="is not a path below"):
            call()
