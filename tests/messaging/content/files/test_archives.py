"""A zip of templates is bounded, and no path in it leads elsewhere."""

import struct
import zipfile
from io import BytesIO

import pytest

from messaging.content.files import archives
from messaging.content.files.file_types import FilesRefused, SourceFile

FILES = [
    SourceFile("_partials/footer.liquid", b"(c)\n"),
    SourceFile("welcome/en_US.email.liquid", b"---\ncategory: X\n---\n<p>\n"),
]


def zipped(entries, method=zipfile.ZIP_DEFLATED):
    made = BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for path, content in entries:
            archive.writestr(zipfile.ZipInfo(path), content, method)
    return made.getvalue()


def refused(data):
    with pytest.raises(FilesRefused) as found:
        archives.read(BytesIO(data))
    (problem,) = found.value.problems
    return str(problem)


def test_an_archive_is_the_same_for_the_same_files_and_is_read_back():
    first, second = BytesIO(), BytesIO()
    archives.write(FILES, first)
    archives.write(FILES, second)
    assert first.getvalue() == second.getvalue()
    assert archives.read(first) == FILES


def test_outer_folder_and_system_files_are_ignored():
    inside = [(f"repository-main/{path}", content) for path, content in FILES]
    more = [
        ("__MACOSX/a/b.liquid", b""),
        ("README.md", b""),
        ("repository-main/.git/x.liquid", b""),
    ]
    assert archives.read(BytesIO(zipped([*inside, *more]))) == FILES
    lone = [("welcome/en_US.email.liquid", b"x")]
    assert archives.read(BytesIO(zipped(lone))) == [SourceFile(*lone[0])]


@pytest.mark.parametrize(
    "path", ["../a.liquid", "/a.liquid", "a/../../b.liquid", "a\\b.liquid", "C:/a.liquid", "./a/b"]
)
def test_path_outside_of_the_folder_is_rejected(path):
    assert refused(zipped([(path, b"x")])) == (
        f"{path}: is not a path below the folder of templates"
    )


def test_large_archives_are_rejected_before_unpacking():
    bomb = zipped([("a/en.sms.liquid", b"0" * archives.FILE_LIMIT), ("b", b"0")])
    assert archives.read(BytesIO(bomb))[0].path == "a/en.sms.liquid"
    large = zipped([(f"{n}", b"0" * 2_100_000) for n in range(10)])
    assert len(large) < 100_000
    assert refused(large) == "The archive: is larger than 20 MB when it is unpacked."
    assert "larger than 2.5 MB" in refused(
        zipped([("a/en.sms.liquid", b"0" * (archives.FILE_LIMIT + 1))])
    )
    assert "contains 1,001 files" in refused(zipped([(f"{n}", b"") for n in range(1001)]))


def test_archive_with_a_false_size_is_rejected():
    """A file says that it has ten bytes, and has a million: no more than ten are unpacked."""
    data = bytearray(zipped([("a/en.sms.liquid", b"0" * 1_000_000)]))
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    data[local + 22 : local + 26] = data[central + 24 : central + 28] = struct.pack("<I", 10)
    assert refused(bytes(data)).startswith("The archive: can't be read as a zip: Bad CRC")


def test_unreadable_archive_or_one_without_templates_is_rejected():
    assert "can't be read as a zip" in refused(b"x")
    assert "has no file that ends with .liquid" in refused(zipped([("a.txt", b"x")]))
    one = [("a/en.sms.liquid", b"x")]
    assert "another method than deflate" in refused(zipped(one, zipfile.ZIP_LZMA))
    secret = bytearray(zipped(one))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        secret[secret.index(mark) + at] |= 1
    assert "encrypted" in refused(bytes(secret))
    twice = zipped([*one, ("b/en.sms.liquid", b"y")]).replace(b"b/en.sms", b"a/en.sms")
    assert refused(twice) == "a/en.sms.liquid: appears twice"
