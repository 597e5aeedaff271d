"""Files that people upload. A process of its own reads a large one."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest
from django.utils.translation import gettext as _

from rme.core.csv_encoding import Unreadable
from rme.core.process import admission
from rme.core.process.errands import SERVICE_ERRANDS, Overrun

R = TypeVar("R")

SECONDS = 60.0
"""CPU time for reading a file."""
SMALL_BYTES = 128 * 1024


def read(request: HttpRequest, file: "UploadedFile[bytes]", work: Callable[..., R]) -> R:
    """Return the result of `work(file=…)` on an open file.

    A process for such work runs it if the file is large, so the work and its result can be pickled.
    Raises what the work raises, Unreadable if it takes too long, and RateLimited.
    """
    turn = request.META.get(admission.TURN)
    if not isinstance(turn, admission.Turn) or (file.size or 0) <= SMALL_BYTES:
        return work(file=file)
    path = file.temporary_file_path() if isinstance(file, TemporaryUploadedFile) else ""
    source = path or file.read()
    try:
        result: R = SERVICE_ERRANDS.run(turn.owners.line, SECONDS, _read, source, work)
    except Overrun:
        raise Unreadable(_("The file takes too long to read. Split it.")) from None
    return result


def _read(source: str | bytes, work: Callable[..., R]) -> R:
    with Path(source).open("rb") if isinstance(source, str) else BytesIO(source) as file:
        return work(file=file)
