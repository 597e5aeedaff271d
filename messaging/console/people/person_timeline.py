"""The timeline of a person: messages, receipts, consent, suppressions and changes, in words."""

from collections.abc import Sequence

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from messaging.consent import entries
from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.messages.explanations import Link, Moment
from messaging.console.messages.message_list import reason_of
from messaging.domain.statuses import EventType
from messaging.models import ConsentEntry, Event, Suppression
from messaging.store.reports.deliveries import DeliveryRow
from rme.core import ids
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.audit import Action, AuditLine

SHOWN = 20
"""The latest messages, consent entries and changes of the timeline, each."""
RECEIPTS = [
    EventType.OPEN,
    EventType.CLICK,
    EventType.BOUNCED,
    EventType.COMPLAINED,
    EventType.UNSUBSCRIBED,
]


def read(
    viewer: Viewer,
    contact_id: str,
    rows: Sequence[DeliveryRow],
    active_suppressions: Sequence[Suppression],
) -> list[Moment]:
    """Return what happened to a person, the latest first; six queries at most."""
    ledger_filter = entries.LedgerFilter(contact_id=contact_id, history=True, limit=SHOWN)
    consent, _following = entries.page(viewer.organization_id, ledger_filter)
    moments = [
        *(_sent(viewer, row) for row in rows),
        *_receipts(viewer, rows),
        *(_decided(viewer, entry) for entry in consent),
        *(_suppressed(viewer, row) for row in active_suppressions),
        *_changes(viewer, contact_id),
    ]
    return sorted(moments, key=lambda moment: moment.at, reverse=True)


def _sent(viewer: Viewer, row: DeliveryRow) -> Moment:
    """Return a message as a line of the timeline."""
    subject = row.template or wording.category(row.category)
    title = wording.message(row.channel, subject)
    text = viewer.without(_outcome(row), row.address)
    link = Link(_("Open message"), explanations.message_url(viewer, row.message_id))
    return Moment(row.created_at, title, text, wording.colour(row.status), [link])


def _outcome(row: DeliveryRow) -> str:
    status, reason = wording.status(row.status), reason_of(row)
    if not reason:
        return status
    return _("%(status)s: %(reason)s") % {"status": status, "reason": reason}


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
            wording.event(event.type),
            by_id[event.delivery_id].template or "",
            "good" if event.type in (EventType.OPEN, EventType.CLICK) else "bad",
            [Link(_("Open message"), explanations.message_url(viewer, event.message_id))],
        )
        for event in events
        if event.delivery_id in by_id
    ]


def _decided(viewer: Viewer, entry: ConsentEntry) -> Moment:
    """Return a consent entry as a line of the timeline."""
    title = wording.decision(entry.status, entry.channel, entry.category)
    source = wording.source(entry.source)
    evidence = wording.evidence(entry.evidence, in_full=viewer.sees_addresses)
    text = ", ".join(filter(None, [source, entry.recorded_by, evidence]))
    colour = "good" if entry.status == "OPTED_IN" else "warn"
    url = reverse("console:consent_entry", args=[viewer.organization_id, entry.pk])
    return Moment(entry.occurred_at, title, text, colour, [Link(_("Open entry"), url)])


def _suppressed(viewer: Viewer, row: Suppression) -> Moment:
    """Return a suppression as a line of the timeline."""
    title = _("Suppressed: %(channel)s, %(recipient)s") % {
        "channel": wording.channel(row.channel),
        "recipient": viewer.shown(row.address) or _("the person"),
    }
    link = Link(_("Open suppression"), explanations.suppression_url(viewer, row.pk))
    return Moment(row.created_at, title, wording.suppressed_by(row.reason), "bad", [link])


def _changes(viewer: Viewer, contact_id: str) -> list[Moment]:
    """Return the latest changes of an embedded contact; their values need whole addresses."""
    if not ids.is_canonical(contact_id):
        return []
    kind = ContentType.objects.get_for_model(Contact)
    # The log of former releases names no organization: its contact has to be one of this one.
    ours = Contact.objects.filter(organization_id=viewer.organization_id, pk=contact_id)
    rows = LogEntry.objects.filter(Exists(ours), content_type=kind, object_id=contact_id)
    former = rows.select_related("user").order_by("-pk")[:SHOWN]
    lines = audit.history(
        Contact._meta.label_lower, contact_id, viewer.organization_id, limit=SHOWN
    )
    return [
        *(_changed(viewer, line) for line in lines),
        *(
            Moment(
                each.action_time,
                _("Changed by %(user)s") % {"user": each.user.get_username()},
                "; ".join(audit.describe_log_entry(each)) if viewer.sees_addresses else "",
            )
            for each in former
        ),
    ]


def _changed(viewer: Viewer, line: AuditLine) -> Moment:
    """Return an entry of the audit as a line of the timeline."""
    entry = line.entry
    user = entry.actor_name or _("somebody unknown")
    title = _(_CHANGES.get(entry.action, _OTHER)) % {"action": entry.action_words, "user": user}
    return Moment(entry.at, title, "; ".join(line.lines) if viewer.sees_addresses else "")


_CHANGES: dict[str, str] = {
    Action.ADDED: gettext_noop("Added by %(user)s"),
    Action.CHANGED: gettext_noop("Changed by %(user)s"),
    Action.DELETED: gettext_noop("Deleted by %(user)s"),
    Action.MERGED: gettext_noop("Merged by %(user)s"),
    Action.EXPORTED: gettext_noop("Exported by %(user)s"),
    Action.ERASED: gettext_noop("Erased by %(user)s"),
}
_OTHER = gettext_noop("%(user)s: %(action)s")
