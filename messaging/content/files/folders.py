"""Read and write a folder of templates that somebody else may have filled, like a repository.

Nothing in the folder leads out of it: each part of a path is opened relative to the folder before
it, and links are refused. Only the folder itself, which the caller names, may be a link.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.utils.translation import gettext, gettext_noop

from messaging.content.files.archives import COUNT_LIMIT, FILE_LIMIT, UNPACKED_LIMIT
from messaging.content.files.file_types import SUFFIX, FileProblem, FilesRefused, SourceFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INNER = _FOLDER | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FILE = gettext_noop(
    "is a link or not a regular file. Put the file itself there: rme doesn't follow links."
)
_NO_FOLDER = gettext_noop(
    "is below a link or a file. Put a folder there: rme doesn't follow links."
)


def files(folder: Path) -> list[SourceFile]:
    """Return the templates in a folder, except hidden ones. Raise FilesRefused, OSError."""
    templates: list[SourceFile] = []
    size = 0
    root = os.open(folder, _FOLDER)
    try:
        for path in _paths(root):
            content = _read(root, path)
            if content is None:
                continue  # it was removed meanwhile
            size += len(content)
            templates.append(SourceFile(path, content))
            if len(templates) > COUNT_LIMIT or size > UNPACKED_LIMIT:
                limit = gettext("%(count_limit)s files and %(value)s MB") % {
                    "count_limit": f"{COUNT_LIMIT:,}",
                    "value": UNPACKED_LIMIT // 10**6,
                }
                raise _refused(
                    str(folder), gettext("has more than %(limit)s of templates.") % {"limit": limit}
                )
    finally:
        os.close(root)
    return templates


def paths(folder: Path) -> list[str]:
    """Return the paths of a folder's templates, without hidden ones; empty without a folder."""
    try:
        root = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return []
    try:
        return _paths(root)
    finally:
        os.close(root)


def read(folder: Path, path: str) -> bytes | None:
    """Return the content of a file below a folder; None without one. Raise FilesRefused."""
    try:
        root = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return None
    try:
        return _read(root, path)
    finally:
        os.close(root)


def write(folder: Path, path: str, content: bytes) -> None:
    """Write a file below a folder, whole or not at all. Raise FilesRefused, OSError.

    A new file replaces the old one, so this never writes to another file through a hard link.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = os.open(folder, _FOLDER)
    try:
        with _parent(root, path, make=True) as (parent, name):
            new = f".{name[:100]}.{secrets.token_hex(8)}"
            descriptor = os.open(new, _NEW, 0o666, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                os.replace(new, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=parent)
                raise
    finally:
        os.close(root)


def _paths(root: int) -> list[str]:
    """Return the paths that end like templates, including links, which `_read` refuses."""
    templates = []
    for place, folders, names, _ in os.fwalk(dir_fd=root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = place.removeprefix(".").removeprefix("/")
        templates += [
            f"{below}/{name}" if below else name
            for name in names
            if name.endswith(SUFFIX) and not name.startswith(".")
        ]
    return sorted(templates)


def _read(root: int, path: str) -> bytes | None:
    try:
        with _parent(root, path, make=False) as (parent, name):
            descriptor = os.open(name, _FILE, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise
        raise _refused(path, gettext(_NO_FILE)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path, gettext(_NO_FILE))
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(FILE_LIMIT + 1)
    if len(content) > FILE_LIMIT:
        raise _refused(path, gettext("is larger than %(value)s MB") % {"value": FILE_LIMIT / 10**6})
    return content


@contextmanager
def _parent(root: int, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """Open the folder of a file; yield it and the file's name. Raise FilesRefused."""
    *folders, name = path.split("/")
    if {"", ".", ".."} & {*folders, name} or "\0" in path:
        raise _refused(path, gettext("is not a path below the folder of templates"))
    current = os.dup(root)
    try:
        for part in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
            try:
                inner = os.open(part, _INNER, dir_fd=current)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                raise _refused(path, gettext(_NO_FOLDER)) from error
            os.close(current)
            current = inner
        yield current, name
    finally:
        os.close(current)


def _refused(path: str, message: str) -> FilesRefused:
    return FilesRefused([FileProblem(path, message)])
