"""The log of API requests: from the request id of an answer to its line, and to its message."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLResolver, get_resolver, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm, MomentField
from messaging.console.messages import explanations
from rme.components.tables import Cell, Column, Target
from rme.core import ids
from rme.core.http.request_records import REST_PREFIX, template_of
from rme.tenants.access.roles import Permission
from rme.tenants.audit import request_log
from rme.tenants.audit.request_log import RequestFilter
from rme.tenants.models import Application, RequestLogEntry

PAGE = 50
COLOURS = {2: "good", 3: "muted", 4: "warn", 5: "bad"}
"""The name of a status's colour, by its first digit."""


@cache
def routes() -> tuple[str, ...]:
    """Return the routes of the REST API, as the log has them."""
    (rest_api,) = (
        each
        for each in get_resolver().url_patterns
        if isinstance(each, URLResolver) and f"/{each.pattern}" == REST_PREFIX
    )
    return tuple(template_of(f"{REST_PREFIX}{each.pattern}") for each in rest_api.url_patterns)


class RequestFilterForm(FilterForm):
    search_name: ClassVar[str] = "request_id"
    request_id = forms.UUIDField(
        required=False,
        label=_("Request id"),
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "placeholder": _("Request id")}
        ),
    )
    status_class = forms.TypedChoiceField(
        required=False,
        label=_("Status"),
        empty_value=None,
        coerce=int,
        choices=[
            ("", _("Any status")),
            ("2", _("2xx: succeeded")),
            ("4", _("4xx: refused")),
            ("5", _("5xx: failed")),
        ],
    )
    route = forms.ChoiceField(required=False, label=_("Route"))
    application_id = forms.TypedChoiceField(
        required=False, label=_("Application"), empty_value=None, coerce=int
    )
    since = MomentField(required=False, label=_("From"))
    until = MomentField(required=False, label=_("Until"))

    def __init__(self, data: Mapping[str, str], applications: Mapping[int, str]) -> None:
        super().__init__(data)
        self.offer("route", [("", gettext("Any route")), *((each, each) for each in routes())])
        options = [(str(key), name) for key, name in applications.items()]
        self.offer("application_id", [("", gettext("Any application")), *options])

    def read(self) -> RequestFilter:
        """Return what the form means; a form that is not valid filters by its valid fields."""
        return RequestFilter(**self.valid_values())


@dataclass(frozen=True, slots=True)
class RequestLine:
    """A request in words."""

    row: RequestLogEntry
    application: str
    """The name of its application; empty if there is none any more."""

    @property
    def answered_at(self) -> datetime:
        return ids.moment(self.row.pk)

    @property
    def colour(self) -> str:
        return COLOURS.get(self.row.status // 100, "muted")

    @property
    def duration(self) -> str:
        return gettext("%(number).1f ms") % {"number": self.row.microseconds / 1000}

    @property
    def request(self) -> str:
        return f"{self.row.method} {self.row.route}"

    @property
    def error(self) -> str:
        """Return what its error's code means."""
        return wording.error(self.row.code)


COLUMNS: list[Column[RequestLine]] = [
    Column("request", _("Request"), lambda line: Cell(line.request), "wide"),
    Column(
        *("answer", _("Answer")),
        lambda line: Cell(str(line.row.status), line.error or line.row.code, line.colour),
        "wide",
    ),
    Column("code", _("Error code"), lambda line: Cell(line.row.code), is_shown=False),
    Column("duration", _("Duration"), lambda line: Cell(line.duration), "small"),
    Column(
        "application", _("Application"), lambda line: Cell(line.application or gettext("Deleted"))
    ),
    Column("id", _("Request id"), lambda line: Cell(str(line.row.request_id)), "wide"),
    Column("answered", _("Time"), lambda line: Cell(at=line.answered_at), "small"),
]


@access.page_for(Permission.SEE_SETTINGS)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the log."""
    applications = _applications(viewer)
    form = RequestFilterForm(request.GET, applications)
    cursor = ids.parse(request.GET.get("after", ""))
    page = request_log.find(viewer.organization_id, form.read(), limit=PAGE, before=cursor)
    return list_page.show(
        request,
        viewer,
        "developers/requests",
        gettext("API requests"),
        columns=COLUMNS,
        lines=[RequestLine(row, applications.get(row.application_id, "")) for row in page.rows],
        target=partial(_target, viewer),
        form=form,
        following=page.following,
        searched_until=ids.moment(page.following) if page.following else None,
        days=settings.REQUEST_LOG_DAYS,
    )


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show_one(request: HttpRequest, viewer: Viewer, logged_id: UUID) -> HttpResponseBase:
    """Return the page of a request, with its application and its message."""
    rows = RequestLogEntry.objects.filter(organization_id=viewer.organization_id)
    row = get_object_or_404(rows, pk=logged_id)
    line = RequestLine(row, _applications(viewer).get(row.application_id, ""))
    links = []
    if row.message_id and viewer.may(Permission.SEE_MESSAGES):
        links.append((explanations.message_url(viewer, row.message_id), gettext("Open message")))
    if line.application and viewer.may(Permission.CHANGE_KEYS):
        url = reverse("admin:tenants_application_change", args=[row.application_id])
        links.append((url, gettext("Open application")))
    back = reverse("console:requests", args=[viewer.organization_id]), gettext("All requests")
    title = gettext("API request")
    return list_page.show_row(request, viewer, title, COLUMNS, line, links=links, back=back)


def _applications(viewer: Viewer) -> dict[int, str]:
    """Return the names of the organization's applications by their ids; one query."""
    rows = Application.objects.filter(organization_id=viewer.organization_id)
    return dict(rows.order_by("name", "pk").values_list("pk", "name"))


def _target(viewer: Viewer, line: RequestLine) -> Target:
    url = reverse("console:request", args=[viewer.organization_id, line.row.pk])
    name = gettext("request %(request)s") % {"request": line.request}
    return Target(url, name, line.answered_at)
