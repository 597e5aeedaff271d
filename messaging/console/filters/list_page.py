"""A list as a page: its table, with the columns that its person has chosen for it."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from messaging.console import access
from messaging.console.access import View, Viewer
from messaging.models import ListColumns
from rme.components import tables
from rme.components.tables import Column, Target

Line = TypeVar("Line")
COLUMN_NAME = re.compile(r"[a-z_]{1,30}")
COLUMNS = 20
"""The most columns of a list that a person chooses."""


def takes_columns(view: View) -> View:
    """Return the view of a list; a POST to it stores the columns that its person chose."""

    @wraps(view)
    def enter(
        request: HttpRequest, viewer: Viewer, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        page = view(request, viewer, *args, **kwargs)  # a POST to what isn't there stores nothing
        if request.method != "POST":
            return page
        _store(request, viewer)
        return HttpResponseRedirect(request.get_full_path())

    return require_http_methods(["GET", "HEAD", "POST"])(enter)


def _store(request: HttpRequest, viewer: Viewer) -> None:
    names = [each for each in request.POST.getlist("column") if COLUMN_NAME.fullmatch(each)]
    ListColumns.objects.update_or_create(
        organization_id=viewer.organization_id,
        user_id=viewer.user.pk,
        page=_name_of(request),
        defaults={"names": names[:COLUMNS]},
    )


def _chosen(request: HttpRequest, viewer: Viewer | None) -> frozenset[str] | None:
    """Return the columns that a person has chosen for a list; None for the usual ones."""
    if viewer is None:
        return None
    rows = ListColumns.objects.filter(
        organization_id=viewer.organization_id, user_id=viewer.user.pk, page=_name_of(request)
    )
    names = rows.values_list("names", flat=True).first()
    return None if names is None else frozenset(names)


def _name_of(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.url_name if match else None) or ""


def show(
    request: HttpRequest,
    viewer: Viewer | None,
    template: str,
    title: str,
    *,
    columns: Sequence[Column[Line]],
    lines: Iterable[Line],
    target: Callable[[Line], Target],
    ticks: str = "",
    peeks: bool = True,
    **context: Any,
) -> HttpResponseBase:
    """Return a list's page: a table of the lines, which lead to their targets."""
    shown_lines = list(lines)
    table = tables.build(
        *(title, columns, shown_lines, target),
        chosen=_chosen(request, viewer),
        ticks=ticks,
        peeks=peeks,
    )
    return access.show(request, viewer, template, title, table=table, lines=shown_lines, **context)


def show_row(
    request: HttpRequest,
    viewer: Viewer | None,
    title: str,
    columns: Sequence[Column[Line]],
    line: Line,
    **context: Any,
) -> HttpResponseBase:
    """Return the page of one line of a list, with all of its columns."""
    facts = tables.facts(columns, line)
    return access.show(request, viewer, "row", title, facts=facts, **context)
