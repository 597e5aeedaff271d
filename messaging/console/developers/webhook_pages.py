"""An endpoint and its webhook deliveries: the list, one with payload and answers, sending again.

Sending again is what `managed_endpoints` does for REST: the same events, under their webhook-ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.developers.webhook_filter import STATUS, WebhookFilterForm
from messaging.console.filters import list_page
from messaging.console.masks import mask_all_in
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.store.webhooks import contents
from messaging.webhooks import delivery_log, endpoints, managed_endpoints, outbox, replays
from messaging.webhooks.delivery_log import WebhookDeliveryFilter
from messaging.webhooks.managed_endpoints import EndpointScope
from rme.components.tables import Cell, Column, Target
from rme.core import errors, ids
from rme.tenants.access.roles import Permission
from rme.tenants.admin import shown_once

PAGE = 50
MOST_PENDING = 1000
"""The most waiting deliveries that are counted."""
DISABLED = _("This endpoint is disabled. Enable it first.")


class AgainForm(forms.Form):
    """Why events are sent again: the audit keeps it."""

    why = forms.CharField(
        max_length=500, label=_("Reason"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


@dataclass(frozen=True, slots=True)
class WebhookAttemptLine:
    """An attempt in words."""

    at: datetime | None
    status: int | None
    ms: int
    error: str
    answer: str

    @property
    def words(self) -> str:
        """Return what came of it: the status of the answer, or why there is none."""
        return self.error or gettext("Answered %(status)s") % {"status": self.status}


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """A webhook delivery in words."""

    row: WebhookDelivery
    attempts: Sequence[WebhookAttemptLine]
    """The latest one first."""

    @property
    def happened_at(self) -> datetime:
        return ids.moment(self.row.event_id)

    @property
    def status(self) -> str:
        return str(STATUS[self.row.status][0])

    @property
    def colour(self) -> str:
        return STATUS[self.row.status][1]

    @property
    def last(self) -> WebhookAttemptLine | None:
        return next(iter(self.attempts), None)


def _line(viewer: Viewer, row: WebhookDelivery) -> DeliveryLine:
    attempts = [
        WebhookAttemptLine(
            at=datetime.fromisoformat(each["at"]) if each["at"] else None,
            status=each["status"],
            ms=each["ms"],
            error=each["error"] or "",
            answer=_shown(viewer, each["answer"] or ""),
        )
        for each in reversed(row.attempts or [])
    ]
    return DeliveryLine(row, attempts)


def _shown(viewer: Viewer, text: str) -> str:
    """Return a text with its addresses as the viewer may see them."""
    return text if viewer.sees_addresses else mask_all_in(text)


def _state(line: DeliveryLine) -> Cell:
    tries = line.row.tries
    words = ngettext("%(number)s attempt", "%(number)s attempts", tries) % {"number": tries}
    return Cell(line.status, words if tries > 1 else "", line.colour)


def _answer(line: DeliveryLine) -> Cell:
    if not line.last:
        return Cell()
    return Cell(line.last.words, gettext("in %(number)s ms") % {"number": line.last.ms})


COLUMNS: list[Column[DeliveryLine]] = [
    Column("event", _("Event"), lambda line: Cell(line.row.type)),
    Column("status", _("Status"), _state),
    Column("answer", _("Last answer"), _answer, "wide"),
    Column("id", _("Event id"), lambda line: Cell(str(line.row.event_id)), "wide"),
    Column("next", _("Next try"), lambda line: Cell(at=line.row.due_at), "small"),
    Column("happened", _("Time"), lambda line: Cell(at=line.happened_at), "small"),
]


def _target(viewer: Viewer, endpoint: WebhookEndpoint, line: DeliveryLine) -> Target:
    arguments = [viewer.organization_id, endpoint.pk, line.row.pk]
    name = gettext("delivery of %(event)s") % {"event": line.row.type}
    return Target(reverse("console:webhook_delivery", args=arguments), name, line.happened_at)


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show_first(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the deliveries of the endpoint that needs a look first: one that fails, or the newest.

    Without an endpoint, say what one is and lead to its form.
    """
    endpoints_of_organization = _endpoints(viewer)
    if not endpoints_of_organization:
        return access.show(
            request, viewer, "developers/no_endpoint", gettext("Webhooks"), **may(viewer)
        )
    first = min(
        endpoints_of_organization,
        key=lambda row: (row.failing_since is None, not row.enabled, -row.pk),
    )
    url = reverse("console:webhook_deliveries", args=[viewer.organization_id, first.pk])
    query = request.GET.urlencode()
    return HttpResponseRedirect(f"{url}?{query}" if query else url)


@access.page_for(Permission.SEE_SETTINGS)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer, endpoint_id: int) -> HttpResponseBase:
    """Return an endpoint with a page of its deliveries, and with a secret that is shown once."""
    endpoint = endpoint_of(viewer, endpoint_id)
    form = WebhookFilterForm(request.GET)
    cursor = ids.parse(request.GET.get("after", ""))
    page = delivery_log.find(endpoint.pk, form.read(), limit=PAGE, before=cursor)
    secrets = shown_once.read(request, endpoint)
    response = list_page.show(
        request,
        viewer,
        "developers/webhooks",
        gettext("Webhook %(name)s") % {"name": endpoint},
        columns=COLUMNS,
        lines=[_line(viewer, row) for row in page.rows],
        target=partial(_target, viewer, endpoint),
        endpoint=endpoint,
        endpoints=_endpoints(viewer),
        pending=delivery_log.count_pending(endpoint, MOST_PENDING + 1),
        most_pending=MOST_PENDING,
        secrets=secrets,
        form=form,
        following=page.following,
        searched_until=ids.moment(page.following) if page.following else None,
        **may(viewer),
    )
    if secrets:
        shown_once.forget(request, response)
    return response


@access.page_for(Permission.SEE_SETTINGS)
def show_one(
    request: HttpRequest, viewer: Viewer, endpoint_id: int, delivery_id: int
) -> HttpResponseBase:
    """Return a delivery with its payload and answers; a POST sends it again."""
    endpoint = endpoint_of(viewer, endpoint_id)
    row = delivery_log.get(endpoint.pk, delivery_id)
    if row is None:
        raise Http404
    problem = ""
    if request.method == "POST":
        viewer.require(Permission.CHANGE_WEBHOOKS)
        problem = _send_again(viewer, endpoint, WebhookDeliveryFilter(webhook_id=row.event_id))
        if not problem:
            messages.success(request, gettext("Queued again with the same webhook-id."))
            return HttpResponseRedirect(request.path)
    event = contents.read(row.pk)
    body = outbox.payload_of(event, test=False) if event else None
    return access.show(
        request,
        viewer,
        "developers/webhook",
        gettext("%(event)s to %(endpoint)s") % {"event": row.type, "endpoint": endpoint},
        endpoint=endpoint,
        line=_line(viewer, row),
        payload=_shown(viewer, _indented(body)),
        message_id=event.message_id if event else None,
        problem=problem,
        **may(viewer),
    )


@access.page_for(Permission.SEE_SETTINGS)
def send_chosen_again(request: HttpRequest, viewer: Viewer, endpoint_id: int) -> HttpResponseBase:
    """Return how many deliveries the filters choose; a POST with a reason sends them again."""
    viewer.require(Permission.CHANGE_WEBHOOKS)
    endpoint = endpoint_of(viewer, endpoint_id)
    is_posted = request.method == "POST"
    filters = WebhookFilterForm(request.POST if is_posted else request.GET)
    form = AgainForm(request.POST if is_posted else None, label_suffix="")
    delivery_filter, problem = filters.read(), ""
    if filters.errors:  # a filter that isn't valid must not choose more than was meant
        problem = gettext("Some filters aren't valid: %(filters)s.") % {"filters": filters.in_words}
    elif form.is_valid():
        problem = _send_again(viewer, endpoint, delivery_filter, form.cleaned_data["why"])
        if not problem:
            messages.success(request, gettext("Queued again with the same webhook-ids."))
            return HttpResponseRedirect(_list_of(viewer, endpoint, filters))
    count = 0 if filters.errors else replays.count_chosen(endpoint, delivery_filter)
    return access.show(
        request,
        viewer,
        "developers/webhooks_again",
        gettext("Resend these deliveries?"),
        endpoint=endpoint,
        filters=filters,
        form=form,
        count=count,
        is_cut=count >= replays.CHOSEN_LIMIT,
        problem=problem,
        back=_list_of(viewer, endpoint, filters),
        **may(viewer),
    )


def _send_again(
    viewer: Viewer,
    endpoint: WebhookEndpoint,
    delivery_filter: WebhookDeliveryFilter,
    reason: str = "",
) -> str:
    """Queue deliveries again; return why that was refused, or an empty text."""
    key = str(endpoint.pk)
    try:
        managed_endpoints.replay_chosen(
            EndpointScope(viewer.organization_id), key, delivery_filter, viewer.actor, reason
        )
    except errors.InvalidPayload:
        return str(DISABLED)
    return ""


def endpoint_of(viewer: Viewer, endpoint_id: int) -> WebhookEndpoint:
    """Return an endpoint of the organization. Raise Http404."""
    try:
        return managed_endpoints.get(EndpointScope(viewer.organization_id), str(endpoint_id))
    except errors.NotFound:
        raise Http404 from None


def _endpoints(viewer: Viewer) -> list[WebhookEndpoint]:
    limit = endpoints.PER_ORGANIZATION
    return managed_endpoints.find(EndpointScope(viewer.organization_id), limit=limit)[0]


def _list_of(viewer: Viewer, endpoint: WebhookEndpoint, filters: WebhookFilterForm) -> str:
    url = reverse("console:webhook_deliveries", args=[viewer.organization_id, endpoint.pk])
    return f"{url}?{filters.query}" if filters.query else url


def may(viewer: Viewer) -> dict[str, Any]:
    """Return what the pages ask of a person's permissions."""
    return {
        "may_change": viewer.may(Permission.CHANGE_WEBHOOKS),
        "may_see_messages": viewer.may(Permission.SEE_MESSAGES),
    }


def _indented(body: bytes | None) -> str:
    """Return a payload as people read it; empty if there is none any more."""
    if body is None:
        return ""
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
