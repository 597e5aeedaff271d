"""Search everywhere: people, messages, templates and accounts by what a person types.

It searches one organization; a whole id is found in all organizations of the person.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import localize, number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from messaging.consent import suppressions
from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.routing import lanes
from messaging.console.studio import partial_pages, variants
from messaging.domain.channels import ALL
from messaging.domain.statuses import Status
from messaging.models import Delivery, Message, Partial, ProviderAccount, Template
from messaging.store.archived import archive
from messaging.store.reports import message_ids
from rme.core import errors, ids
from rme.core.db.statement_timeout import StatementLate
from rme.crm import people, platforms
from rme.crm.connectors.records import ContactRecord
from rme.tenants.access.roles import Permission
from rme.tenants.audit import request_log
from rme.tenants.audit.request_log import RequestFilter

PART_OF_ID = re.compile("[0-9a-f]{8,31}")
SCAN_SECONDS = 0.5
"""How long a search looks through messages for a part of an id."""


@dataclass(frozen=True, slots=True)
class Result:
    """One thing, and its page."""

    title: str
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one kind."""

    title: str
    icon: str
    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class Search:
    """What a person typed."""

    viewer: Viewer
    term: str
    limit: int
    """The most results of a kind."""
    is_typing: bool = False
    """Whether the person may go on typing: a remote platform and the archive aren't asked yet."""

    @property
    def identifier(self) -> UUID | None:
        """Return the id that was typed whole."""
        return ids.parse(self.term.lower())

    @property
    def part_of_id(self) -> str:
        """Return the part of an id that was typed, without hyphens; else nothing."""
        digits = self.term.replace("-", "").lower()
        return digits if PART_OF_ID.fullmatch(digits) else ""


def find(request: HttpRequest, search: Search) -> tuple[list[Group], list[str]]:
    """Return the results by kind, and what was not searched; twelve statements at most."""
    notes: list[str] = []
    contacts = _people(search, notes)
    groups = [
        Group(_("People"), "person", _person_results(search.viewer, contacts)),
        Group(_("Actions"), "bolt", _person_actions(search, contacts)),
    ]
    if search.identifier:
        rows = _messages(request, search, search.identifier)
        groups += [
            Group(_("Messages"), "mail", _message_results(search.viewer, rows)),
            Group(_("Actions"), "bolt", _message_actions(search, rows)),
            Group(_("API requests"), "lists", _requests(search, search.identifier)),
        ]
    else:
        rows = _messages_with(search, notes, is_scanned=not contacts)
        groups += [
            Group(_("Messages"), "mail", _message_results(search.viewer, rows)),
            Group(_("Actions"), "bolt", _message_actions(search, rows)),
            Group(_("Suppressions"), "block", _suppressions(search)),
            Group(_("Templates"), "description", _templates(search)),
            Group(_("Partials"), "article", _partials(search)),
            Group(_("Provider accounts"), "cell_tower", _accounts(search)),
        ]
    return [group for group in groups if group.results], notes


def _people(search: Search, notes: list[str]) -> list[ContactRecord]:
    if not search.viewer.may(Permission.SEE_MESSAGES):
        return []
    try:
        return _contacts(search)
    except errors.Unavailable as error:
        notes.append(error.message)
        return []


def _person_results(viewer: Viewer, contacts: Iterable[ContactRecord]) -> list[Result]:
    return [
        Result(
            _shown_name(viewer, contact),
            ", ".join(filter(None, [viewer.shown(contact.email), viewer.shown(contact.mobile)])),
            explanations.person_url(viewer, contact.id),
        )
        for contact in contacts
    ]


def _shown_name(viewer: Viewer, contact: ContactRecord) -> str:
    addresses = viewer.shown(contact.email), viewer.shown(contact.mobile)
    return next(filter(None, [contact.name, *addresses]), _("No name"))


def _person_actions(search: Search, contacts: Sequence[ContactRecord]) -> list[Result]:
    """Return what the field offers to do, if only one person is found."""
    if not search.is_typing or len(contacts) != 1:
        return []
    viewer, (contact,) = search.viewer, contacts
    name = {"name": _shown_name(viewer, contact)}
    actions = []
    if viewer.may_operate:
        query = urlencode({"recipient": contact.id})
        url = f"{reverse('console:send', args=[viewer.organization_id])}?{query}"
        actions.append(Result(_("Send message to {name}").format(**name), "", url))
    if viewer.may_change_people:
        url = f"{explanations.person_url(viewer, contact.id)}?open=opt_out"
        actions.append(Result(_("Record opt-out for {name}").format(**name), "", url))
    return actions


def _contacts(search: Search) -> list[ContactRecord]:
    """Return people, of a remote platform only when the term is complete. Raise Unavailable."""
    organization_id, limit = search.viewer.organization_id, search.limit
    if search.is_typing or platforms.get(organization_id).kind == platforms.EMBEDDED:
        by_parts = search.viewer.sees_addresses
        return people.suggest(organization_id, search.term, limit=limit, by_parts=by_parts)
    return people.find(organization_id, search.term, limit=limit)


def _messages(request: HttpRequest, search: Search, identifier: UUID) -> list[Message]:
    """Return the message with an id, or that of the delivery with it."""
    condition = access.readable(request)
    rows = list(Message.objects.filter(condition, pk=identifier))
    if not rows:
        deliveries = Delivery.objects.filter(condition, pk=identifier).values("message_id")
        rows = list(Message.objects.filter(condition, pk__in=list(deliveries)))
    if not rows and not search.is_typing and (archived := archive().find(condition, identifier)):
        rows = [archived.message]
    return rows


def _messages_with(search: Search, notes: list[str], *, is_scanned: bool) -> list[Message]:
    """Return messages whose ids begin with what was typed, else the newest that contain it."""
    digits, organization_id = search.part_of_id, search.viewer.organization_id
    if not digits or not search.viewer.may(Permission.SEE_MESSAGES):
        return []
    bounds = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    rows = Message.objects.filter(organization_id=organization_id)
    beginning = list(rows.filter(pk__range=bounds).order_by("-pk")[: search.limit])
    if beginning or not is_scanned:
        return beginning
    until = time.monotonic() + SCAN_SECONDS
    try:
        keys = message_ids.with_part(organization_id, digits, limit=search.limit, until=until)
    except StatementLate:
        notes.append(_("Searching messages for a part of an id took too long. Type its beginning."))
        return []
    notes.append(
        _("A part of an id is searched in the latest {count} messages.").format(
            count=number_format(message_ids.SCANNED, force_grouping=True)
        )
    )
    return list(rows.filter(pk__in=keys).order_by("-pk")) if keys else []


def _message_results(viewer: Viewer, rows: Iterable[Message]) -> list[Result]:
    """Return messages by template and time; the id is the text, in which its part is seen."""
    return [
        Result(
            _("{name}, {time}").format(
                name=row.template or _("Message"),
                time=localize(localtime(row.created_at, viewer.zone)),
            ),
            str(row.pk),
            reverse("console:message", args=[row.organization_id, row.pk]),
        )
        for row in rows
    ]


def _message_actions(search: Search, rows: Sequence[Message]) -> list[Result]:
    """Return what the field offers to do, if only one message is found."""
    if not search.is_typing or len(rows) != 1 or not search.viewer.may_operate:
        return []
    row = rows[0]
    condition = {"organization_id": search.viewer.organization_id, "message_id": row.pk}
    if not Delivery.objects.filter(**condition, status=Status.SCHEDULED).exists():
        return []
    url = reverse("console:message", args=[row.organization_id, row.pk])
    return [Result(_("Cancel this scheduled message"), "", f"{url}?open=cancel")]


def _requests(search: Search, identifier: UUID) -> list[Result]:
    """Return the requests with a request id, as an error's answer names it."""
    viewer = search.viewer
    if not viewer.may(Permission.SEE_SETTINGS):
        return []
    request_filter = RequestFilter(request_id=identifier)
    page = request_log.find(viewer.organization_id, request_filter, limit=search.limit)
    url = reverse("console:requests", args=[viewer.organization_id])
    return [
        Result(str(row), f"{row.status} {row.code}", f"{url}?request_id={identifier}")
        for row in page.rows[:1]
    ]


def _suppressions(search: Search) -> list[Result]:
    viewer = search.viewer
    address = suppressions.normalize_address(ALL, search.term, viewer.organization.region)
    if address is None or not viewer.sees_contents:
        return []
    suppression_filter = suppressions.SuppressionFilter(address=address)
    rows, _next = suppressions.find(viewer.organization_id, suppression_filter, limit=search.limit)
    return [
        Result(
            row.address or row.contact_id,
            wording.SUPPRESSED_BY[row.reason],
            explanations.suppression_url(viewer, row.pk),
        )
        for row in rows
    ]


def _templates(search: Search) -> list[Result]:
    if not search.viewer.may(Permission.SEE_TEMPLATES):
        return []
    rows = (
        Template.objects.filter(**_named(search))
        .order_by("name", "channel", "language")
        .distinct("name")
    )
    return [Result(row.name, "", variants.url_of(row)) for row in rows[: search.limit]]


def _partials(search: Search) -> list[Result]:
    if not search.viewer.may(Permission.SEE_TEMPLATES):
        return []
    rows = Partial.objects.filter(**_named(search)).order_by("name")
    return [Result(row.name, "", partial_pages.url_of(row)) for row in rows[: search.limit]]


def _accounts(search: Search) -> list[Result]:
    if not search.viewer.may(Permission.SEE_SETTINGS):
        return []
    rows = ProviderAccount.objects.filter(**_named(search)).order_by("name")[: search.limit]
    return [Result(row.name, wording.channel(row.channel), lanes.account_url(row)) for row in rows]


def _named(search: Search) -> dict[str, str]:
    """Return the conditions of the organization's rows whose names contain what was typed."""
    return {"organization_id": search.viewer.organization_id, "name__icontains": search.term}
