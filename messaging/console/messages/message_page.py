"""A message's page: its outcome in one sentence, then the timeline, then the content."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.filters.message_filter import RECIPIENTS
from messaging.console.messages import (
    explanations,
    message_list,
    message_record,
    message_timeline,
    sent_content,
)
from messaging.console.messages.explanations import Explanation, Moment
from messaging.console.messages.message_list import MessageLine
from messaging.console.messages.message_timeline import AttemptLine
from messaging.domain.statuses import Status
from messaging.models import Message
from messaging.reports import delivery_list, queries
from messaging.reports.queries import MessageDetail
from messaging.store.reports.deliveries import DeliveryRow
from rme.core import errors
from rme.tenants import audit
from rme.tenants.access.roles import Permission

RECIPIENTS_SHOWN = 20
RESENDABLE = frozenset({Status.FAILED, Status.BLOCKED, Status.EXPIRED})
"""Statuses of deliveries that can be sent again."""
CONTENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox"
)
"""The policy of a mail's HTML: no scripts, no forms, and no images of others, which would tell a
sender that the mail was looked at."""


@dataclass(frozen=True, slots=True)
class _Recipients:
    """A message with its deliveries, in words."""

    rows: Sequence[DeliveryRow]
    lines: Sequence[MessageLine]
    explanations: Sequence[Explanation]
    moments: Sequence[Sequence[Moment]]
    attempts: Sequence[Sequence[AttemptLine]]


@access.page
@require_GET
def show(request: HttpRequest, viewer: Viewer, message_id: UUID) -> HttpResponseBase:
    """Return the page of a message, with the timeline of one of its recipients."""
    detail = _detail(viewer, message_id)
    recipients = _recipients(viewer, detail, message_id)
    position = _position(request, len(recipients.rows))
    row = recipients.rows[position]
    if viewer.sees_contents:
        _record_read(viewer, row)
    several = len(recipients.rows) > 1
    counts = Counter(each.status for each in recipients.rows)
    first_shown = _shown_from(request, position)
    return access.show(
        request,
        viewer,
        "message",
        _title(recipients, position),
        message=detail.message,
        category=wording.category(detail.message.category),
        headline=_of_all(counts) if several else recipients.explanations[0],
        several=several,
        lines=recipients.lines[first_shown : first_shown + RECIPIENTS_SHOWN],
        metadata=detail.message.metadata if viewer.sees_contents else {},
        shown_from=first_shown,
        earlier=max(0, first_shown - RECIPIENTS_SHOWN) if first_shown else None,
        later=first_shown + RECIPIENTS_SHOWN
        if first_shown + RECIPIENTS_SHOWN < len(recipients.rows)
        else None,
        chosen=recipients.lines[position],
        explanation=recipients.explanations[position],
        moments=recipients.moments[position],
        attempts=recipients.attempts[position],
        content=_content(viewer, row) if viewer.sees_contents else None,
        scheduled=counts[Status.SCHEDULED],
        asks_cancel=request.GET.get("open") == "cancel",
        # what is archived is only read
        resendable=0 if detail.archived else sum(counts[status] for status in RESENDABLE),
        is_archived=detail.archived,
        held=sum(row.is_held for row in recipients.rows),
    )


@access.page
@require_GET
def record(request: HttpRequest, viewer: Viewer, message_id: UUID) -> HttpResponseBase:
    """Return the page with everything that is stored of a message and one of its recipients."""
    detail = _detail(viewer, message_id)
    rows = delivery_list.of_message(viewer.organization_id, message_id, limit=RECIPIENTS).rows
    row = rows[_position(request, len(rows))]
    if viewer.sees_contents:
        _record_read(viewer, row)
    return access.show(
        request,
        viewer,
        "message_record",
        _("Message as record"),
        message=detail.message,
        row=row,
        record=message_record.of(viewer, detail, row),
    )


@access.page
@require_GET
def html(request: HttpRequest, viewer: Viewer, message_id: UUID, position: int) -> HttpResponseBase:
    """Return the HTML of an email alone, for a sandboxed frame."""
    viewer.require(Permission.SEE_CONTENTS)
    rows = delivery_list.of_message(viewer.organization_id, message_id, limit=RECIPIENTS).rows
    row = next((each for each in rows if each.position == position), None)
    email = _content(viewer, row).email if row else None
    if email is None or not email.html:
        raise Http404
    assert row is not None  # it has an email
    _record_read(viewer, row)
    policy = {"Content-Security-Policy": CONTENT_POLICY, "Cache-Control": "no-store"}
    return HttpResponse(email.html, headers=policy)


def _title(recipients: _Recipients, position: int) -> str:
    """Return the channel and the recipient of a message, or how many recipients it has."""
    count = len(recipients.rows)
    if count > 1:
        title = ngettext(
            "Message to %(number)s recipient", "Message to %(number)s recipients", count
        )
        return title % {"number": count}
    line = recipients.lines[position]
    channel = wording.channel(line.row.channel)
    recipient = line.name or line.address or _("a deleted contact")
    return _("%(channel)s to %(recipient)s") % {"channel": channel, "recipient": recipient}


def _detail(viewer: Viewer, message_id: UUID) -> MessageDetail:
    try:
        return queries.detail(viewer.organization_id, str(message_id), with_trace=True)
    except errors.NotFound:
        raise Http404 from None


def _recipients(viewer: Viewer, detail: MessageDetail, message_id: UUID) -> _Recipients:
    """Return a message in words; four statements, however many recipients it has."""
    rows = delivery_list.of_message(viewer.organization_id, message_id, limit=RECIPIENTS).rows
    traces = {each.contact_id: each for each in detail.trace or ()}
    stopped_by = explanations.entries(viewer.organization_id, traces.values())
    explained, moments, attempts = [], [], []
    for row in rows:
        steps = traces[row.contact_id].steps
        events = [each for each in detail.events if each.contact_id == row.contact_id]
        explained.append(explanations.explain(viewer, row, steps, events, stopped_by))
        moments.append(message_timeline.timeline(viewer, row, steps, events, stopped_by))
        attempts.append(message_timeline.attempts(viewer, row, steps))
    lines = message_list.message_lines(viewer, rows)
    return _Recipients(rows, lines, explained, moments, attempts)


def _of_all(counts: Counter[str]) -> Explanation:
    """Return one sentence about all recipients of a message."""
    outcomes = [wording.status_count(status, count) for status, count in counts.most_common()]
    colours = [wording.colour(status) for status in counts]
    worst = next((each for each in ("bad", "warn", "info") if each in colours), "good")
    total = counts.total()
    text = ngettext(
        "%(number)s recipient: %(outcomes)s.", "%(number)s recipients: %(outcomes)s.", total
    )
    return Explanation(text % {"number": total, "outcomes": ", ".join(outcomes)}, worst)


def _position(request: HttpRequest, count: int) -> int:
    text = request.GET.get("recipient", "")
    return min(int(text), count - 1) if text.isdecimal() and len(text) < 4 else 0


def _shown_from(request: HttpRequest, position: int) -> int:
    """Return the first recipient of the page that is shown: the one with the chosen recipient."""
    text = request.GET.get("from", "")
    start = int(text) if text.isdecimal() and len(text) < 4 else position
    return start // RECIPIENTS_SHOWN * RECIPIENTS_SHOWN


def _record_read(viewer: Viewer, row: DeliveryRow) -> None:
    """Record a reading of the content of a delivery: the page and its frames count once."""
    entry = audit.NewEntry(
        audit.Action.READ,
        viewer.organization_id,
        kind=Message._meta.label_lower,
        object_id=str(row.message_id),
        label=f"{row.template or row.category}, {row.channel}",
        text=f"to recipient {row.position + 1}",
        contact_id=row.contact_id,
    )
    audit.record_read(viewer.actor, entry)


def _content(viewer: Viewer, row: DeliveryRow) -> sent_content.SentContent:
    people = message_list.people(viewer.organization_id, [row.contact_id])
    return sent_content.of(viewer.organization, row, people.get(row.contact_id))
