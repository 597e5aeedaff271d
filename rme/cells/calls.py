"""Calls from one cell to another: signed, and answered from the called cell's own database."""

from collections.abc import Callable, Mapping

import orjson
import requests
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from rme.cells import signatures

SECONDS = 1.0
"""How long another cell may take: a page of the console waits for it."""
Answer = Mapping[str, object]
Ask = Callable[[str, str, Mapping[str, object]], Answer]
"""`ask`, or what takes its place."""


class CellNotReached(Exception):
    """Another cell does not answer."""


def ask(cell: str, path: str, body: Mapping[str, object]) -> Answer:
    """Return the answer of another cell. Raise CellNotReached."""
    if cell not in settings.CELLS:
        raise CellNotReached(cell)
    text = orjson.dumps(body)
    purpose = signatures.call_purpose("POST", path)
    headers = {
        "Authorization": signatures.sign(settings.CELL_SECRET, purpose, text),
        "Content-Type": "application/json",
    }
    try:
        response = requests.post(
            f"{settings.CELLS[cell]}{path}",
            text,
            headers=headers,
            timeout=SECONDS,
            allow_redirects=False,
        )
        response.raise_for_status()
        answer = orjson.loads(response.content)
    except (requests.RequestException, ValueError) as error:
        raise CellNotReached(cell) from error
    if response.status_code != 200 or not isinstance(answer, dict):
        raise CellNotReached(cell)
    return answer


def other_cells() -> list[str]:
    """Return the names of the other cells."""
    return [name for name in settings.CELLS if name != settings.CELL] if settings.CELL else []


def signed(view: Callable[[Mapping[str, object]], Answer]) -> Callable[..., HttpResponse]:
    """Return the view of a call between cells: 404 for callers who cannot sign."""

    @csrf_exempt
    def answer(request: HttpRequest) -> HttpResponse:
        purpose = signatures.call_purpose(str(request.method), request.path_info)
        header = request.headers.get("Authorization", "")
        if not signatures.is_signed(settings.CELL_SECRET, purpose, request.body, header):
            return HttpResponse(status=404)
        try:
            body = orjson.dumps(view(orjson.loads(request.body)))
        except (ValueError, KeyError, TypeError):
            return HttpResponse(status=400)
        return HttpResponse(body, content_type="application/json")

    return answer
