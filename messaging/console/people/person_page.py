"""A person's page: whether they can be reached, what happened to them, and what can be done."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from messaging.consent import entries, suppressions
from messaging.consent.privacy import requests
from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.messages import explanations
from messaging.console.messages.explanations import Explanation, Link, Moment
from messaging.console.messages.message_list import reason_of
from messaging.console.people import reachability
from messaging.console.people.person_forms import DecisionForm, OptInForm, OptOutForm
from messaging.content import compose
from messaging.domain.channels import Channel
from messaging.domain.statuses import EventType
from messaging.models import ConsentEntry, Event, PrivacyRequest, Suppression
from messaging.reports import delivery_list, trace
from messaging.store.archived import archive
from messaging.store.reports.deliveries import DeliveryFilter, DeliveryRow
from push import devices
from push.models import Device
from rme.core import errors, ids
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action, AuditLine

Forms = dict[str, DecisionForm]
"""The forms that were sent with errors, by name."""
SHOWN = 20
"""The latest messages, consent entries and changes of the timeline, each."""
RECEIPTS = [
    EventType.OPEN,
    EventType.CLICK,
    EventType.BOUNCED,
    EventType.COMPLAINED,
    EventType.UNSUBSCRIBED,
]


@dataclass(frozen=True, slots=True)
class Latest:
    """A message to a person, and its outcome in words."""

    row: DeliveryRow
    explanation: Explanation
    url: str


@access.page
def show(request: HttpRequest, viewer: Viewer, contact_id: str) -> HttpResponseBase:
    """Return a person's page; a POST records a decision."""
    contact, problem = _contact(viewer, contact_id)
    filled: Forms = {}
    if request.method == "POST":
        viewer.require(Permission.CHANGE_PEOPLE)
        if contact is None:
            raise Http404
        response = _act(request, viewer, contact, filled)
        if response is not None:
            return response
    rows = delivery_list.find(
        viewer.organization_id, DeliveryFilter(contact_ids=[contact_id]), limit=SHOWN
    ).rows
    consent, _ = entries.page(
        viewer.organization_id,
        entries.LedgerFilter(contact_id=contact_id, history=True, limit=SHOWN),
    )
    if contact is None and not rows and not consent and not problem:
        raise Http404
    active_suppressions = _suppressions(viewer, contact_id, contact)
    changes = _changes(viewer, contact_id) if contact else []
    moments = [
        *(_sent(viewer, row) for row in rows),
        *_receipts(viewer, rows),
        *(_decided(viewer, entry) for entry in consent),
        *(_listed(viewer, row) for row in active_suppressions),
        *changes,
    ]
    return access.show(
        request,
        viewer,
        "person",
        (contact and contact.name) or "Person",
        contact=contact,
        contact_id=contact_id,
        email=viewer.shown(contact.email) if contact else "",
        mobile=viewer.shown(contact.mobile) if contact else "",
        problem=problem,
        channels=reachability.of(viewer, contact) if contact else [],
        suppressions=[(row, wording.SUPPRESSED_BY[row.reason]) for row in active_suppressions],
        latest=_latest(viewer, rows),
        moments=sorted(moments, key=lambda moment: moment.at, reverse=True),
        forms=_forms(viewer, filled) if contact and viewer.may_change_people else [],
        requests=_requests(viewer, contact_id),
        is_stored=contact is not None and ids.is_canonical(contact_id),
        devices=_devices(viewer, contact_id),
        may_see_test_entries=viewer.may(Permission.SEE_PEOPLE),
    )


# --- actions ------------------------------------------------------------------------------------
def _act(
    request: HttpRequest,
    viewer: Viewer,
    contact: ContactRecord,
    filled: Forms,
) -> HttpResponseBase | None:
    """Do what a form of the page asks for; return the redirect, or None with the form in `filled`.

    The redirect keeps a reload from doing it twice.
    """
    kind = request.POST.get("form", "")
    form = OptInForm(viewer, request.POST) if kind == "opt_in" else OptOutForm(viewer, request.POST)
    filled[kind] = form
    if not form.record(contact.id):
        return None
    cleaned = form.cleaned_data
    evidence = wording.evidence(form.stated_evidence)
    scope = {name: cleaned[name] for name in ("channel", "category")}
    changes = access.values(contact=contact.id, **scope, evidence=evidence)
    note(viewer, Action.CONSENT, text=form.status, changes=changes, contact_id=contact.id)
    messages.success(request, f"{wording.decision(form.status, **scope)}.")
    return HttpResponseRedirect(request.path)


def _forms(viewer: Viewer, filled: Forms) -> list[tuple[forms.Form, str, str, str]]:
    """Return the page's forms: each with its name, its title and its button."""
    return [
        (filled.get("opt_out") or OptOutForm(viewer), "opt_out", "Record an opt-out", "Opt out"),
        (filled.get("opt_in") or OptInForm(viewer), "opt_in", "Record consent", "Record consent"),
    ]


# --- what is shown ------------------------------------------------------------------------------
def _contact(viewer: Viewer, contact_id: str) -> tuple[ContactRecord | None, str]:
    """Return a person, and what keeps the platform from answering."""
    if len(contact_id) > 64 or "\0" in contact_id:
        raise Http404
    try:
        return get_contacts(viewer.organization_id, [contact_id]).get(contact_id), ""
    except errors.Unavailable as error:
        return None, error.message


def _suppressions(
    viewer: Viewer, contact_id: str, contact: ContactRecord | None
) -> list[Suppression]:
    """Return the suppressions in force of a person and their addresses; one query."""
    addresses = [compose.address_of(contact, channel) for channel in Channel] if contact else []
    condition = suppressions.about([contact_id], addresses)
    return list(suppressions.current(viewer.organization_id).filter(condition).order_by("-pk"))


def _requests(viewer: Viewer, contact_id: str) -> list[PrivacyRequest]:
    """Return the person's requests for a data export or an erasure; one query."""
    if not viewer.may(Permission.SEE_PEOPLE):
        return []
    request_filter = requests.PrivacyRequestFilter(contact_ids=[contact_id])
    return requests.page(viewer.organization_id, request_filter, limit=SHOWN)[0]


def _devices(viewer: Viewer, contact_id: str) -> list[Device]:
    """Return the person's latest devices; one query."""
    if not viewer.may(Permission.SEE_PEOPLE):
        return []
    return devices.find(viewer.organization_id, contact_id=contact_id, limit=SHOWN)[0]


def _changes(viewer: Viewer, contact_id: str) -> list[Moment]:
    """Return the latest changes of an embedded contact; their values need whole addresses."""
    if not ids.is_canonical(contact_id):
        return []
    kind = ContentType.objects.get_for_model(Contact)
    rows = LogEntry.objects.filter(content_type=kind, object_id=contact_id)
    former = rows.select_related("user").order_by("-pk")[:SHOWN]
    lines = audit.history(
        Contact._meta.label_lower, contact_id, viewer.organization_id, limit=SHOWN
    )
    return [
        *(_changed(viewer, line) for line in lines),
        *(
            Moment(
                each.action_time,
                f"Changed by {each.user.get_username()}",
                "; ".join(audit.describe_log_entry(each)) if viewer.sees_addresses else "",
            )
            for each in former
        ),
    ]


def _changed(viewer: Viewer, line: AuditLine) -> Moment:
    """Return an entry of the audit as a line of the timeline."""
    title = f"{line.entry.action_words.capitalize()} by {line.entry.actor_name or 'nobody known'}"
    return Moment(line.entry.at, title, "; ".join(line.lines) if viewer.sees_addresses else "")


def _sent(viewer: Viewer, row: DeliveryRow) -> Moment:
    """Return a message as a line of the timeline."""
    title = f"{row.channel}: {row.template or row.category}"
    text = ": ".join(filter(None, [wording.status(row.status), reason_of(row)]))
    text = viewer.without(text, row.address)
    link = Link("Message", explanations.message_url(viewer, row.message_id))
    return Moment(row.created_at, title, text, wording.colour(row.status), [link])


def _receipts(viewer: Viewer, rows: Sequence[DeliveryRow]) -> list[Moment]:
    """Return opens, clicks and complaints of messages; one query."""
    by_id = {row.id: row for row in rows}
    events = Event.objects.filter(
        organization_id=viewer.organization_id,
        message_id__in={row.message_id for row in rows},
        type__in=RECEIPTS,
    )
    return [
        Moment(
            event.at,
            wording.EVENTS[event.type],
            by_id[event.delivery_id].template or "",
            "good" if event.type in (EventType.OPEN, EventType.CLICK) else "bad",
            [Link("Message", explanations.message_url(viewer, event.message_id))],
        )
        for event in events
        if event.delivery_id in by_id
    ]


def _decided(viewer: Viewer, entry: ConsentEntry) -> Moment:
    """Return a consent entry as a line of the timeline."""
    everything = f"{entry.channel.title()}, {entry.category}" if entry.channel == "ALL" else ""
    title = f"{entry.get_status_display()}: {everything or f'{entry.channel}, {entry.category}'}"
    source = wording.SOURCES.get(entry.source, entry.source)
    evidence = wording.evidence(entry.evidence, in_full=viewer.sees_addresses)
    text = ", ".join(filter(None, [source, entry.recorded_by, evidence]))
    colour = "good" if entry.status == "OPTED_IN" else "warn"
    link = Link("Entry", reverse("console:consent_entry", args=[viewer.organization_id, entry.pk]))
    return Moment(entry.occurred_at, title, text, colour, [link])


def _listed(viewer: Viewer, row: Suppression) -> Moment:
    """Return a suppression as a line of the timeline."""
    title = f"Suppressed on {row.channel}: {viewer.shown(row.address) or 'the person'}"
    links = (
        [Link("Lift", explanations.lift_url(viewer, row.pk))] if viewer.may_change_people else []
    )
    return Moment(row.created_at, title, wording.SUPPRESSED_BY[row.reason], "bad", links)


def _latest(viewer: Viewer, rows: Sequence[DeliveryRow]) -> Latest | None:
    """Return the latest message that did not arrive, explained, or else the latest one.

    Five statements at most.
    """
    unsent = [row for row in rows if wording.colour(row.status) in ("bad", "warn")]
    row = next(iter(unsent or rows), None)
    if row is None:
        return None
    recorded = trace.record_of(row.message_id)
    if not recorded.deliveries:  # it is in the archive
        archived = archive().find(Q(organization_id=viewer.organization_id), row.message_id)
        recorded = trace.of_archived(archived) if archived else recorded
    traces = trace.of_record(recorded)
    recipient_trace = next((each for each in traces if each.contact_id == row.contact_id), None)
    stopped_by = explanations.entries(
        viewer.organization_id, [recipient_trace] if recipient_trace else []
    )
    steps = recipient_trace.steps if recipient_trace else []
    explanation = explanations.explain(viewer, row, steps, [], stopped_by)
    return Latest(row, explanation, explanations.message_url(viewer, row.message_id))
