"""The core facts of a message, for the panel beside its list."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations, message_list, message_timeline
from messaging.reports import delivery_list, queries
from messaging.store.reports.deliveries import Cursor, DeliveryFilter
from rme.core import errors


@access.page
@require_GET
def show(request: HttpRequest, viewer: Viewer, message_id: UUID) -> HttpResponseBase:
    """Return the outcome of a message for one recipient: its sentence, facts and timeline."""
    text = request.GET.get("recipient", "")
    position = int(text) if text.isdecimal() and len(text) < 4 else 0
    rows = delivery_list.find(
        viewer.organization_id,
        DeliveryFilter(message_id=message_id),
        limit=1,
        cursor=Cursor(message_id, position - 1),
    ).rows
    if not rows:
        raise Http404
    try:
        detail = queries.detail(viewer.organization_id, str(message_id), with_trace=True)
    except errors.NotFound:
        raise Http404 from None
    (row,) = rows
    traces = [each for each in detail.trace or () if each.contact_id == row.contact_id]
    steps = traces[0].steps if traces else []
    events = [each for each in detail.events if each.contact_id == row.contact_id]
    stopped_by = explanations.entries(viewer.organization_id, traces)
    (line,) = message_list.message_lines(viewer, rows)
    context = {
        "organization": viewer.organization,
        "line": line,
        "channel": wording.channel(row.channel),
        "category": wording.category(row.category),
        "explanation": explanations.explain(viewer, row, steps, events, stopped_by),
        "moments": message_timeline.timeline(viewer, row, steps, events, stopped_by),
        "person_url": explanations.person_url(viewer, row.contact_id),
    }
    return render(request, "admin/console/message_peek.html", context)
