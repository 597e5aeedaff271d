"""Files that people download. A process of its own makes them, row by row."""

import pickle
from collections.abc import Callable, Iterator

from django.http import HttpRequest, StreamingHttpResponse

from rme.core.http.serving import long_answers
from rme.core.process import admission
from rme.core.process.errand_process import in_pieces
from rme.core.process.errands import SERVICE_ERRANDS, Pieces

SECONDS = 300.0
"""CPU time for making a file."""
CSV, NDJSON, ZIP = "text/csv; charset=utf-8", "application/x-ndjson", "application/zip"
_ENDINGS = {CSV: "csv", NDJSON: "ndjson", ZIP: "zip"}

Parts = Iterator[bytes] | Iterator[str]


def file(
    request: HttpRequest, name: str, kind: str, work: Callable[..., Parts], *args: object
) -> StreamingHttpResponse:
    """Return what `work(*args)` yields as a file that no cache stores.

    A process for such work runs it, so it is a function of a module, and its arguments can be
    pickled; it checks no permissions. Raises what the work raises before its first part, and
    RateLimited while the organization's other files are being made, or are on their way to clients
    and have used up its room.
    """
    pickle.dumps((work, args))
    turn = request.META.get(admission.TURN)
    if isinstance(turn, admission.Turn):
        owner = turn.owners.line
        long_answers.require_room(request.META, owner)
        pieces = SERVICE_ERRANDS.stream(owner, SECONDS, work, *args)
    else:  # outside the web server nobody else waits for this thread
        pieces = Pieces(in_pieces(work(*args)))
    response = StreamingHttpResponse(pieces, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}.{_ENDINGS[kind]}"'
    response["Cache-Control"] = "no-store"
    return response
