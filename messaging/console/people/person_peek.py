"""The core facts of a person, for the panel beside the list of contacts."""

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import message_list
from messaging.console.people import channel_lines, reachability
from messaging.reports import delivery_list
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import errors
from rme.crm.contacts import get_contacts
from rme.tenants.organizations import languages

SHOWN = 5
"""The latest messages that are shown."""


@access.page
@require_GET
def show(request: HttpRequest, viewer: Viewer, contact_id: str) -> HttpResponseBase:
    """Return a person's addresses, their reachability and their latest messages."""
    if len(contact_id) > 64 or "\0" in contact_id:
        raise Http404
    try:
        contact = get_contacts(viewer.organization_id, [contact_id]).get(contact_id)
    except errors.Unavailable:
        contact = None
    if contact is None:
        raise Http404
    rows = delivery_list.find(
        viewer.organization_id, DeliveryFilter(contact_ids=[contact_id]), limit=SHOWN
    ).rows
    context = {
        "organization": viewer.organization,
        "contact": contact,
        "email": viewer.shown(contact.email),
        "mobile": viewer.shown(contact.mobile),
        "language": languages.name(contact.language) if contact.language else "",
        "channels": [
            (each, *channel_lines.state(each)) for each in reachability.of(viewer, contact)
        ],
        "lines": [
            (line, wording.channel(line.row.channel))
            for line in message_list.message_lines(viewer, rows)
        ],
    }
    return render(request, "admin/console/people/person_peek.html", context)
