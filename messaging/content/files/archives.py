"""Files of templates in a zip. What is read is bounded before it is unpacked."""

import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import IO

from django.utils.translation import gettext

from messaging.content.files.file_types import SUFFIX, FileProblem, FilesRefused, SourceFile

BYTES_LIMIT = 3_000_000
"""The most bytes of an archive."""
COUNT_LIMIT = 1_000
"""The most files in an archive."""
UNPACKED_LIMIT = 20_000_000
"""The most bytes of all files."""
FILE_LIMIT = 2_500_000
"""The most bytes of one file."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def write(files: Iterable[SourceFile], to: IO[bytes]) -> None:
    """Write files as an archive, which is the same for the same files."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            info = zipfile.ZipInfo(path, _FIRST_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)


def read(archive: IO[bytes]) -> list[SourceFile]:
    """Return the templates in an archive, which may stand in one folder. Raise FilesRefused."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = _entries(opened)
            files = [SourceFile(each.filename, _content(opened, each)) for each in entries]
    # zipfile raises NotImplementedError for a compression that it does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise _refused(
            "", gettext("can't be read as a zip: %(error)s") % {"error": error}
        ) from error
    if not files:
        raise _refused("", gettext("has no file that ends with %(suffix)s") % {"suffix": SUFFIX})
    return _below_one_folder(files)


def _entries(archive: zipfile.ZipFile) -> Sequence[zipfile.ZipInfo]:
    """Return the entries that are templates. Raise FilesRefused."""
    every = archive.infolist()
    if len(every) > COUNT_LIMIT:
        raise _refused(
            "",
            gettext("contains %(count)s files; %(count_limit)s at most.")
            % {"count": f"{len(every):,}", "count_limit": f"{COUNT_LIMIT:,}"},
        )
    if sum(entry.file_size for entry in every) > UNPACKED_LIMIT:
        raise _refused(
            "",
            gettext("is larger than %(value)s MB when it is unpacked.")
            % {"value": UNPACKED_LIMIT // 10**6},
        )
    seen: set[str] = set()
    for entry in every:
        name = entry.filename
        parts = name.rstrip("/").split("/")
        # `orig_filename` is the name before a NUL was cut off.
        if {"", ".", ".."} & {*parts} or "\\" in name or ":" in name or name != entry.orig_filename:
            raise _refused(name, gettext("is not a path below the folder of templates"))
        if name in seen:
            raise _refused(name, gettext("appears twice"))
        seen.add(name)
    return [entry for entry in every if _is_template(entry.filename)]


def _is_template(path: str) -> bool:
    """Return whether a file is a template; systems and tools add others, which begin with a dot."""
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.split("/"))
    return path.endswith(SUFFIX) and not hidden


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file; no more are unpacked than the archive says there are."""
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise _refused(
            entry.filename, gettext("is encrypted, or packed by another method than deflate")
        )
    if entry.file_size > FILE_LIMIT:
        raise _refused(
            entry.filename, gettext("is larger than %(value)s MB") % {"value": FILE_LIMIT / 10**6}
        )
    with archive.open(entry) as file:
        content = file.read(FILE_LIMIT + 1)
    if len(content) != entry.file_size:
        raise _refused(entry.filename, gettext("is not as large as the archive says"))
    return content


def _below_one_folder(files: list[SourceFile]) -> list[SourceFile]:
    """Return the files with paths below their folder, if all of them stand in one more."""
    tops = {path.split("/")[0] for path, _ in files}
    if len(tops) != 1 or any(path.count("/") != 2 for path, _ in files):
        return files
    return [SourceFile(path.partition("/")[2], content) for path, content in files]


def _refused(path: str, message: str) -> FilesRefused:
    return FilesRefused([FileProblem(path or "The archive", message)])
