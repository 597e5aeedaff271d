"""Files that people download."""

from collections.abc import Iterable

from django.http import StreamingHttpResponse


def csv_file(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return lines of CSV as the file `name`.csv, which no cache stores."""
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    response["Cache-Control"] = "no-store"
    return response
