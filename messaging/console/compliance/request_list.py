"""Requests for data exports and erasures: the list, and recording a new one."""

from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.consent.privacy import requests
from messaging.consent.privacy.requests import PrivacyRequestFilter
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.compliance.request_forms import NewRequestForm, PrivacyFilterForm
from messaging.console.filters import list_page
from messaging.console.people import names
from messaging.models import PrivacyRequest
from rme.components.tables import Cell, Column, Target
from rme.core import errors, ids
from rme.tenants.access.roles import Permission

PAGE = 50
COLOURS = {"OPEN": "info", "RUNNING": "info", "DONE": "good", "REFUSED": "muted"}


@dataclass(frozen=True, slots=True)
class PrivacyRequestLine:
    """A request in words."""

    row: PrivacyRequest
    whom: str
    url: str
    colour: str
    is_overdue: bool


def line(viewer: Viewer, row: PrivacyRequest, contact_names: names.Names) -> PrivacyRequestLine:
    """Return a request in words."""
    url = reverse("console:privacy_request", args=[viewer.organization_id, row.pk])
    is_overdue = row.is_pending and row.due_at < timezone.now()
    return PrivacyRequestLine(
        row, _whom(viewer, row, contact_names), url, COLOURS[row.state], is_overdue
    )


def _whom(viewer: Viewer, row: PrivacyRequest, contact_names: names.Names) -> str:
    if row.contact_id:
        return contact_names.of(row.contact_id)
    return viewer.shown(row.address) or gettext("a deleted address")


def _state(line: PrivacyRequestLine) -> Cell:
    overdue = [(gettext("Overdue"), "bad")] if line.is_overdue else []
    return Cell(line.row.get_state_display(), colour=line.colour, pills=overdue)


COLUMNS: list[Column[PrivacyRequestLine]] = [
    Column("who", _("Who"), lambda line: Cell(line.whom), "wide"),
    Column("request", _("Request"), lambda line: Cell(line.row.get_kind_display())),
    Column("state", _("State"), _state),
    Column("requested", _("Requested"), lambda line: Cell(at=line.row.requested_at)),
    Column("deadline", _("Deadline"), lambda line: Cell(at=line.row.due_at)),
    Column("recorded_by", _("Recorded by"), lambda line: Cell(line.row.recorded_by)),
    Column("note", _("How it was requested"), lambda line: Cell(line.row.note), is_shown=False),
]


def _target(line: PrivacyRequestLine) -> Target:
    words = {"kind": line.row.get_kind_display(), "whom": line.whom}
    return Target(line.url, gettext("%(kind)s of %(whom)s") % words, line.row.requested_at)


@access.page_for(Permission.SEE_PEOPLE)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of requests, newest first."""
    form = PrivacyFilterForm(request.GET)
    problem, request_filter = "", PrivacyRequestFilter()
    try:
        request_filter = form.read(viewer.organization_id)
    except errors.Unavailable as error:
        problem = error.message
    request_filter = replace(request_filter, cursor=ids.parse(request.GET.get("after", "")))
    rows, following = requests.page(viewer.organization_id, request_filter, limit=PAGE)
    contact_names = names.read(viewer, {row.contact_id for row in rows})
    return list_page.show(
        request,
        viewer,
        "compliance/requests",
        gettext("Privacy requests"),
        columns=COLUMNS,
        lines=[line(viewer, row, contact_names) for row in rows],
        target=_target,
        form=form,
        problem=problem or contact_names.problem,
        following=following,
    )


@access.page_for(Permission.CHANGE_PEOPLE)
def new(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a new request, which may name kind and person; a POST records it."""
    if request.method == "POST":
        form = NewRequestForm(viewer, request.POST)
        if row := form.open():
            url = reverse("console:privacy_request", args=[viewer.organization_id, row.pk])
            return HttpResponseRedirect(url)
    else:
        initial = {name: request.GET.get(name, "")[:320] for name in ("kind", "person")}
        form = NewRequestForm(viewer, None, **initial)
    return access.show(
        request,
        viewer,
        "compliance/new_request",
        gettext("New privacy request"),
        form=form,
    )
