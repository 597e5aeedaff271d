"""The store of the files: a folder or an S3-compatible store, by obstore.

obstore (the `object_store` crate of Apache Arrow) serves both by one interface and has no
dependencies. pyarrow's own S3FileSystem would have done without it, but hangs when a process ends
(apache/arrow#50188) and does not survive a fork of a process that used it.
"""

import hashlib
import os
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from django.conf import settings
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from rme.core.environment.archive_settings import StoreSettings

CONNECT_SECONDS = 2.0


class StoreFailed(Exception):
    """A request to the store failed; the text has no secret."""


def _failed(action: str, error: Exception) -> StoreFailed:
    # obstore's own texts quote addresses and answers at length.
    return StoreFailed(f"{action}: {type(error).__name__}")


@lru_cache(maxsize=4)
def _open(url: str, options: tuple[tuple[str, str], ...], seconds: float) -> LocalStore | S3Store:
    """Open the store, once in a process: obstore keeps threads, which a fork would lose."""
    if (parts := urlsplit(url)).scheme == "file":
        return LocalStore(Path(unquote(parts.path)), mkdir=True)
    arguments: dict[str, Any] = dict(options)
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        **arguments,
        client_options={
            "allow_http": arguments.get("endpoint", "").startswith("http://"),
            "connect_timeout": timedelta(seconds=min(CONNECT_SECONDS, seconds)),
            "timeout": timedelta(seconds=seconds),
        },
        retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=seconds)},
    )


def _store(seconds: float) -> LocalStore | S3Store:
    store_settings: StoreSettings | None = settings.ARCHIVE
    if store_settings is None:
        raise StoreFailed("ARCHIVE_URL is not set")
    return _open(store_settings.url, tuple(sorted(store_settings.options.items())), seconds)


def read_range(path: str, start: int, end: int) -> bytes:
    """Return bytes of a file, within `ARCHIVE_SECONDS`. Raises StoreFailed."""
    try:
        return bytes(
            obstore.get_range(_store(settings.ARCHIVE_SECONDS), path, start=start, end=end)
        )
    except (BaseError, OSError, ValueError) as error:
        raise _failed("a file could not be read", error) from error


WRITE_SECONDS = 60.0
"""How long the job waits for a request: it moves whole files."""


def read(path: str) -> bytes:
    """Return a whole file. Raises StoreFailed."""
    try:
        return bytes(obstore.get(_store(WRITE_SECONDS), path).bytes())
    except (BaseError, OSError, ValueError) as error:
        raise _failed("a file could not be read", error) from error


def write(path: str, content: bytes) -> str:
    """Write a new file, read it back, and return its SHA-256. Raises StoreFailed.

    A folder's file is on disk when this returns: what it holds is deleted from PostgreSQL next.
    """
    store = _store(WRITE_SECONDS)
    try:
        obstore.put(store, path, content, use_multipart=False)
        if isinstance(store, LocalStore) and store.prefix is not None:
            _sync(store.prefix, path)
    except (BaseError, OSError, ValueError) as error:
        raise _failed("a file could not be written", error) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest_of(read(path)) != digest:
        raise StoreFailed("a file was not stored as it was written")
    return digest


def _sync(root: Path, path: str) -> None:
    """Bring a file and the folders that lead to it to the disk."""
    below = Path(path)
    for folder in (below, *below.parents):
        descriptor = os.open(root / folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def delete(paths: Sequence[str]) -> None:
    """Delete files; one that is not there is no error. Raises StoreFailed."""
    store = _store(WRITE_SECONDS)
    for path in paths:
        try:
            obstore.delete(store, path)
        except FileNotFoundError:
            continue
        except (BaseError, OSError, ValueError) as error:
            raise _failed("a file could not be deleted", error) from error
