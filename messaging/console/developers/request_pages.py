"""The log of API requests: from the request id of an answer to its line, and to its message."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLResolver, get_resolver
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField
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
    request_id = forms.UUIDField(
        required=False,
        label="Request id",
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    status_class = forms.TypedChoiceField(
        required=False,
        label="Status",
        empty_value=None,
        coerce=int,
        choices=[
            ("", "Any status"),
            ("2", "2xx: done"),
            ("4", "4xx: refused"),
            ("5", "5xx: failed"),
        ],
    )
    route = forms.ChoiceField(required=False)
    application_id = forms.TypedChoiceField(
        required=False, label="Application", empty_value=None, coerce=int
    )
    since = MomentField(required=False, label="From")
    until = MomentField(required=False, label="Until")

    def __init__(self, data: Mapping[str, str], applications: Mapping[int, str]) -> None:
        super().__init__(data)
        self.offer("route", [("", "Any route"), *((each, each) for each in routes())])
        options = [(str(key), name) for key, name in applications.items()]
        self.offer("application_id", [("", "Any application"), *options])

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
    def milliseconds(self) -> float:
        return self.row.microseconds / 1000

    @property
    def error(self) -> str:
        """Return what its error's code means."""
        return wording.error(self.row.code)


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the log."""
    programs = Application.objects.filter(organization_id=viewer.organization_id).order_by(
        "name", "pk"
    )
    applications = dict(programs.values_list("pk", "name"))
    form = RequestFilterForm(request.GET, applications)
    cursor = ids.parse(request.GET.get("after", ""))
    page = request_log.find(viewer.organization_id, form.read(), limit=PAGE, before=cursor)
    return access.show(
        request,
        viewer,
        "developers/requests",
        "API requests",
        form=form,
        lines=[RequestLine(row, applications.get(row.application_id, "")) for row in page.rows],
        following=page.following,
        searched_until=ids.moment(page.following) if page.following else None,
        is_filtered=bool(form.query),
        days=settings.REQUEST_LOG_DAYS,
        may_see_messages=viewer.may(Permission.SEE_MESSAGES),
        may_see_applications=viewer.may(Permission.CHANGE_KEYS),
    )
