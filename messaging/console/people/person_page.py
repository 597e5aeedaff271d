"""A person's page: whether they can be reached, what happened to them, and what can be done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.consent import entries, suppressions
from messaging.consent.privacy import requests
from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.messages import explanations, message_list
from messaging.console.messages.explanations import Explanation
from messaging.console.people import channel_lines, person_timeline, reachability
from messaging.console.people.person_forms import DecisionForm, OptInForm, OptOutForm
from messaging.console.people.person_timeline import SHOWN
from messaging.content import compose
from messaging.domain.channels import Channel
from messaging.models import PrivacyRequest, Suppression
from messaging.reports import delivery_list, trace
from messaging.store.archived import archive
from messaging.store.reports.deliveries import DeliveryFilter, DeliveryRow
from push import devices
from rme.core import errors, ids
from rme.core.db import clock
from rme.core.zones import is_zone, zone
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action
from rme.tenants.organizations import languages

Forms = dict[str, DecisionForm]
"""The forms that were sent with errors, by name."""
TABS = {
    "": gettext_lazy("Timeline"),
    "messages": gettext_lazy("Messages"),
    "consent": gettext_lazy("Consent"),
    "devices": gettext_lazy("Devices"),
    "record": gettext_lazy("Record"),
}
"""The tabs of the page, by their names in the address."""


@dataclass(frozen=True, slots=True)
class Latest:
    """A message to a person, and its outcome in words."""

    row: DeliveryRow
    title: str
    explanation: Explanation
    url: str


@dataclass(frozen=True, slots=True)
class TabLink:
    """A tab of the page."""

    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class _Person:
    """A person with what every tab shows of them."""

    contact_id: str
    contact: ContactRecord | None
    problem: str
    """What keeps the platform from answering."""
    rows: Sequence[DeliveryRow]
    suppressions: Sequence[Suppression]


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
    message_filter = DeliveryFilter(contact_ids=[contact_id])
    rows = delivery_list.find(viewer.organization_id, message_filter, limit=SHOWN).rows
    person = _Person(contact_id, contact, problem, rows, _suppressions(viewer, contact_id, contact))
    if contact is None and not rows and not problem and not _has_consent(viewer, contact_id):
        raise Http404
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else ""
    is_stored = contact is not None and ids.is_canonical(contact_id)
    channels = reachability.of(viewer, contact) if contact else []
    return access.show(
        request,
        viewer,
        "person",
        (contact and contact.name) or _("Person"),
        contact=contact,
        contact_id=contact_id,
        about=_about(viewer, contact) if contact else "",
        problem=problem,
        channels=channels,
        channel_lines=channel_lines.lines(viewer, contact_id, channels, is_stored=is_stored),
        latest=_latest(viewer, rows),
        forms=_forms(viewer, filled, request.GET.get("open", ""))
        if contact and viewer.may_change_people
        else [],
        is_stored=is_stored,
        tab=tab,
        tabs=[
            TabLink(str(title), f"?tab={name}" if name else request.path, name == tab)
            for name, title in TABS.items()
        ],
        **_PARTS[tab](viewer, person),
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
    done = {"decision": wording.decision(form.status, **scope)}
    messages.success(request, _("%(decision)s.") % done)
    return HttpResponseRedirect(request.path)


def _forms(
    viewer: Viewer, filled: Forms, opened: str
) -> list[tuple[forms.Form, str, str, str, bool]]:
    """Return the page's forms: name, title, button, and whether the page opens each at once."""
    words = [
        ("opt_out", OptOutForm, _("Record opt-out"), _("Opt out")),
        ("opt_in", OptInForm, _("Record consent"), _("Save consent")),
    ]
    return [
        (filled.get(name) or form(viewer), name, title, button, name == opened or name in filled)
        for name, form, title, button in words
    ]


# --- the header ---------------------------------------------------------------------------------
def _contact(viewer: Viewer, contact_id: str) -> tuple[ContactRecord | None, str]:
    """Return a person, and what keeps the platform from answering."""
    if len(contact_id) > 64 or "\0" in contact_id:
        raise Http404
    try:
        return get_contacts(viewer.organization_id, [contact_id]).get(contact_id), ""
    except errors.Unavailable as error:
        return None, error.message


def _about(viewer: Viewer, contact: ContactRecord) -> str:
    """Return a person's addresses, language and local time."""
    parts = [
        viewer.shown(contact.email),
        viewer.shown(contact.mobile),
        languages.name(contact.language) if contact.language else "",
    ]
    if is_zone(contact.zone):
        local = clock.now().astimezone(zone(contact.zone))
        city = contact.zone.rpartition("/")[2].replace("_", " ")
        time = date_format(local, "H:i")
        parts.append(_("%(time)s in %(city)s") % {"time": time, "city": city})
    return " · ".join(filter(None, parts))


def _suppressions(
    viewer: Viewer, contact_id: str, contact: ContactRecord | None
) -> list[Suppression]:
    """Return the suppressions in force of a person and their addresses; one query."""
    addresses = [compose.address_of(contact, channel) for channel in Channel] if contact else []
    condition = suppressions.about([contact_id], addresses)
    return list(suppressions.current(viewer.organization_id).filter(condition).order_by("-pk"))


def _has_consent(viewer: Viewer, contact_id: str) -> bool:
    """Return whether the ledger has an entry of the person; one query."""
    one = entries.LedgerFilter(contact_id=contact_id, history=True, limit=1)
    return bool(entries.page(viewer.organization_id, one)[0])


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
    subject = row.template or wording.category(row.category)
    title = wording.message(row.channel, subject)
    return Latest(row, title, explanation, explanations.message_url(viewer, row.message_id))


# --- the tabs -----------------------------------------------------------------------------------
def _timeline(viewer: Viewer, person: _Person) -> dict[str, Any]:
    moments = person_timeline.read(viewer, person.contact_id, person.rows, person.suppressions)
    return {"moments": moments}


def _messages(viewer: Viewer, person: _Person) -> dict[str, Any]:
    return {"lines": message_list.message_lines(viewer, person.rows)}


def _consent(viewer: Viewer, person: _Person) -> dict[str, Any]:
    """Return the decisions that count now, suppressions and privacy requests; two queries."""
    current = entries.LedgerFilter(contact_id=person.contact_id, limit=SHOWN)
    rows, _following = entries.page(viewer.organization_id, current)
    return {
        "decisions": [
            (
                row,
                wording.decision(row.status, row.channel, row.category),
                wording.source(row.source),
                wording.evidence(row.evidence, in_full=viewer.sees_addresses),
            )
            for row in rows
        ],
        "suppressions": [
            (row, wording.channel(row.channel), wording.suppressed_by(row.reason))
            for row in person.suppressions
        ],
        "requests": _requests(viewer, person.contact_id),
    }


def _requests(viewer: Viewer, contact_id: str) -> list[PrivacyRequest]:
    """Return the person's requests for a data export or an erasure; one query."""
    if not viewer.may(Permission.SEE_PEOPLE):
        return []
    request_filter = requests.PrivacyRequestFilter(contact_ids=[contact_id])
    return requests.page(viewer.organization_id, request_filter, limit=SHOWN)[0]


def _devices(viewer: Viewer, person: _Person) -> dict[str, Any]:
    """Return the person's latest devices; one query."""
    if not viewer.may(Permission.SEE_PEOPLE):
        return {"devices": []}
    rows, _following = devices.find(
        viewer.organization_id, contact_id=person.contact_id, limit=SHOWN
    )
    return {"devices": rows}


def _record(viewer: Viewer, person: _Person) -> dict[str, Any]:
    """Return the fields of the contact, as the platform has them."""
    contact = person.contact
    fields = [
        (_("Contact id"), person.contact_id),
        (_("First name"), contact.first_name if contact else ""),
        (_("Last name"), contact.last_name if contact else ""),
        (_("Email"), viewer.shown(contact.email) if contact else ""),
        (_("Mobile"), viewer.shown(contact.mobile) if contact else ""),
        (_("Language"), languages.name(contact.language) if contact and contact.language else ""),
        (_("Time zone"), contact.zone if contact else ""),
        (_("Account"), contact.account_name if contact else ""),
    ]
    may_see_test_entries = viewer.may(Permission.SEE_PEOPLE)
    return {"fields": fields, "may_see_test_entries": may_see_test_entries}


_PARTS: dict[str, Callable[[Viewer, _Person], dict[str, Any]]] = {
    "": _timeline,
    "messages": _messages,
    "consent": _consent,
    "devices": _devices,
    "record": _record,
}
"""What each tab shows."""
