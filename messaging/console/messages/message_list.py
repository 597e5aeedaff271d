"""The list of messages: one line for each recipient, with filters that combine, and its export."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from messaging import links
from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.actions import bulk_actions
from messaging.console.actions.bulk_actions import ActionKind
from messaging.console.filters import list_page, saved_filters
from messaging.console.filters.message_filter import (
    Chosen,
    MessageFilterForm,
    read,
    since_of,
    value_in_words,
)
from messaging.domain.statuses import Status
from messaging.models import MessageContent
from messaging.reports import delivery_list
from messaging.store.reports.deliveries import (
    Cursor,
    DeliveryFilter,
    DeliveryPage,
    DeliveryRow,
)
from rme.components.tables import Cell, Column, Target
from rme.core import csv_lines, errors, ids
from rme.core.db.clock import iso
from rme.core.http import downloads
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants.audit import Action

PAGE = 50
OFFERS = {
    ActionKind.RESEND: _("Resend failed"),
    ActionKind.CANCEL: _("Cancel scheduled"),
    ActionKind.LIFT: _("Lift suppressions"),
}
"""The buttons of actions on messages that are ticked, or on all that the filters match."""
DECISIONS = {ActionKind.SEND_AGAIN: _("Resend"), ActionKind.GIVE_UP: _("Give up")}
"""The buttons of the list of messages that need review."""
EXPORTED = 100_000
"""The most rows of an export."""
EXPORT_PAGE = 1000
TEXT_SHOWN = 120


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One recipient of a message, in words."""

    row: DeliveryRow
    name: str
    address: str
    subject: str
    status: str
    colour: str
    reason: str

    @property
    def whom(self) -> str:
        """Return the recipient by name, or else by address."""
        return self.name or self.address or gettext("a person without a name")

    @property
    def title(self) -> str:
        """Return what the message says in a few words, or else its category."""
        return self.subject or wording.category(self.row.category)

    @property
    def channel(self) -> str:
        return wording.channel(self.row.channel)


def message_lines(viewer: Viewer, rows: Sequence[DeliveryRow]) -> list[MessageLine]:
    """Return deliveries in words: one query for their contents, one for their contacts."""
    names = people(viewer.organization_id, [row.contact_id for row in rows])
    subjects = _subjects(viewer, rows)
    return [
        MessageLine(
            row=row,
            name=names[row.contact_id].name if row.contact_id in names else "",
            address=viewer.shown(row.address),
            subject=row.template or subjects.get(row.message_id, ""),
            status=wording.status(row.status),
            colour=wording.colour(row.status),
            reason=viewer.without(reason_of(row), row.address),
        )
        for row in rows
    ]


def reason_of(row: DeliveryRow) -> str:
    """Return why a delivery is as it is, in words; empty if nothing is to be explained."""
    if row.status in (Status.FAILED, Status.BLOCKED, Status.EXPIRED, Status.UNKNOWN):
        return wording.reason(row.reason, row.detail)
    if row.status == Status.ACCEPTED and row.waiting:
        return wording.waiting(row.waiting)
    return ""


def _recipient(line: MessageLine) -> Cell:
    return Cell(line.whom, note=line.address if line.name else "")


def _content(line: MessageLine) -> Cell:
    test = [(gettext("Test"), "muted")] if line.row.test else []
    return Cell(line.subject, pills=test)


def _columns(viewer: Viewer, choice: Chosen) -> list[Column[MessageLine]]:
    """Return the columns of the list; that of scheduled messages says when they go, and not
    when rme accepted them where there is little room.
    """
    is_scheduled = list(choice.delivery_filter.statuses) == [Status.SCHEDULED]

    def sends_at(line: MessageLine) -> Cell:
        at = line.row.due_at if line.row.status == Status.SCHEDULED else None
        return Cell(wording.minute(at, viewer.zone) if at else "")

    def state(line: MessageLine) -> Cell:
        at = "" if is_scheduled else sends_at(line).text
        note = gettext("Sends at %(time)s") % {"time": at} if at else line.reason
        return Cell(line.status, note, line.colour)

    return [
        Column("recipient", _("Recipient"), _recipient, "wide"),
        Column("content", _("Content"), _content, "wide"),
        Column(
            "channel", _("Channel"), lambda line: Cell(wording.channel(line.row.channel)), "small"
        ),
        Column("category", _("Category"), lambda line: Cell(wording.category(line.row.category))),
        Column("status", _("Status"), state, "medium" if is_scheduled else "wide"),
        Column(
            "sends_at", _("Sends at"), sends_at, "medium", is_shown=False, is_fixed=is_scheduled
        ),
        Column("provider", _("Provider"), lambda line: Cell(line.row.provider or "")),
        Column(
            "accepted",
            _("Accepted"),
            lambda line: Cell(at=line.row.created_at),
            "" if is_scheduled else "small",
        ),
    ]


def people(organization_id: str, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
    """Return contacts by id; none while a remote platform does not answer."""
    try:
        return get_contacts(organization_id, list({*contact_ids} - {""}))
    except errors.Unavailable:
        return {}


def _subjects(viewer: Viewer, rows: Sequence[DeliveryRow]) -> dict[UUID, str]:
    """Return the first line of messages that have no template."""
    message_ids = {row.message_id for row in rows if not row.template}
    if not message_ids or not viewer.sees_contents:
        return {}
    contents = MessageContent.objects.filter(
        pk__in=message_ids, organization_id=viewer.organization_id
    )
    bodies = contents.values_list("pk", "body__content")
    return {pk: _first_line(links.preview_values(content or {})) for pk, content in bodies}


def _first_line(content: dict[str, str]) -> str:
    texts = (content.get(name) for name in ("subject", "title", "text", "body"))
    return next((text for text in texts if text), "")[:TEXT_SHOWN]


def find(viewer: Viewer, choice: Chosen, cursor: Cursor | None, limit: int) -> DeliveryPage:
    """Return a page of the deliveries that a form's filters match."""
    if choice.matches_nobody:
        return DeliveryPage([], None)
    return delivery_list.find(
        viewer.organization_id, choice.delivery_filter, limit=limit, cursor=cursor
    )


def _read_cursor(text: str) -> Cursor | None:
    message_id, _, position = text.rpartition("_")
    identifier = ids.parse(message_id)
    is_place = position.isdecimal() and len(position) < 6
    return Cursor(identifier, int(position)) if identifier and is_place else None


def _target(viewer: Viewer, line: MessageLine) -> Target:
    arguments = [viewer.organization_id, line.row.message_id]
    query = f"?recipient={line.row.position}" if line.row.position else ""
    return Target(
        f"{reverse('console:message', args=arguments)}{query}",
        gettext("message to %(person)s") % {"person": line.whom},
        line.row.created_at,
        key=str(line.row.id),
        peek_url=f"{reverse('console:message_peek', args=arguments)}{query}",
    )


@access.page
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the list."""
    form = MessageFilterForm(viewer, request.GET)
    choice = read(form)
    page = find(viewer, choice, _read_cursor(request.GET.get("after", "")), PAGE)
    following = page.following
    return list_page.show(
        request,
        viewer,
        "messages",
        gettext("Messages"),
        columns=_columns(viewer, choice),
        lines=message_lines(viewer, page.rows),
        target=partial(_target, viewer),
        ticks=bulk_actions.TICKED if viewer.may_operate else "",
        form=form,
        problem=choice.problem,
        following=f"{following.message_id}_{following.position}" if following else "",
        searched_until=ids.moment(following.message_id) if following else None,
        reasons=_reasons(form, page.rows),
        offers=_offers(choice),
        tick_offers=_labels(DECISIONS if choice.delivery_filter.held else OFFERS),
        is_review=choice.delivery_filter.held,
        saved=saved_filters.links(viewer, form.query),
        save_form=saved_filters.SaveFilterForm(form),
    )


def _reasons(form: MessageFilterForm, rows: Sequence[DeliveryRow]) -> list[tuple[str, str]]:
    """Return the reasons on a filtered page in words, each with the query of its messages alone."""
    by_reason = _queries_by_reason(form.typed, rows)
    is_plain = not form.query or form.typed.get("reason")
    return [] if is_plain or len(by_reason) < 2 else by_reason


def _queries_by_reason(
    typed: Mapping[str, str], rows: Sequence[DeliveryRow]
) -> list[tuple[str, str]]:
    codes = dict.fromkeys(row.reason for row in rows if row.reason)
    return [
        (value_in_words("reason", code), urlencode({**typed, "reason": code})) for code in codes
    ]


class FailureLinks(NamedTuple):
    """Failures of a provider account in words, and where they are listed and resent."""

    text: str
    url: str
    resend_url: str
    """Empty if there is nothing to resend."""


def failures(viewer: Viewer, account_name: str) -> list[FailureLinks]:
    """Return the links of an account's failures of the last hour: all of them, then each reason."""
    query = {"status": Status.FAILED.value, "provider": account_name, "period": "1"}
    failed = DeliveryFilter(
        statuses=[Status.FAILED], provider=account_name, since=since_of(None, "1")
    )
    rows = delivery_list.find(viewer.organization_id, failed, limit=PAGE).rows
    url = reverse("console:messages", args=[viewer.organization_id])
    resend_url = reverse("console:choose", args=[viewer.organization_id, "resend"])
    queries = [(gettext("Failures of the last hour"), urlencode(query))]
    return [
        FailureLinks(words, f"{url}?{typed}", f"{resend_url}?{typed}" if rows else "")
        for words, typed in [*queries, *_queries_by_reason(query, rows)]
    ]


def _offers(choice: Chosen) -> list[tuple[str, str | Promise]]:
    """Return the actions that there may be something for: those of the chosen status, or all."""
    if choice.delivery_filter.held:
        return _labels(DECISIONS)
    statuses = set(choice.delivery_filter.statuses)
    return [
        (kind.lower(), label)
        for kind, label in OFFERS.items()
        if not statuses or statuses & set(bulk_actions.STATUSES[kind])
    ]


def _labels(offers: Mapping[ActionKind, str | Promise]) -> list[tuple[str, str | Promise]]:
    return [(kind.lower(), label) for kind, label in offers.items()]


@access.page
@require_POST
def export(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return what the filters match as a CSV file, and record the export."""
    form = MessageFilterForm(viewer, request.POST)
    choice = read(form)
    changes = access.values(filter=form.in_words)
    name = f"messages-{viewer.organization_id}"
    response = downloads.file(request, name, downloads.CSV, _csv, viewer, choice)
    note(viewer, Action.EXPORTED, text="messages", changes=changes, contact_id=choice.contact_id)
    return response


_HEADER = (
    "time", "message", "contact", "person", "address", "channel", "category", "template",
    "status", "reason", "provider", "test",
)  # fmt: skip


def _csv(viewer: Viewer, choice: Chosen) -> Iterator[str]:
    return csv_lines.write_rows(_table(viewer, choice))


def _table(viewer: Viewer, choice: Chosen) -> Iterator[Sequence[str]]:
    """Yield the rows of an export, page by page, up to EXPORTED."""
    yield _HEADER
    cursor: Cursor | None = None
    count = 0
    while count < EXPORTED:
        page = find(viewer, choice, cursor, min(EXPORT_PAGE, EXPORTED - count))
        names = people(viewer.organization_id, [row.contact_id for row in page.rows])
        for row in page.rows:
            reason = viewer.without(reason_of(row), row.address)
            name = names[row.contact_id].name if row.contact_id in names else ""
            yield (
                iso(row.created_at) or "", str(row.message_id), row.contact_id, name,
                viewer.shown(row.address), row.channel, row.category, row.template or "",
                row.status, reason, row.provider or "", "yes" if row.test else "",
            )  # fmt: skip
        count += len(page.rows)
        if page.following is None:
            return
        cursor = page.following
