"""Search everywhere: people, messages, templates and accounts by what a person types.

It searches one organization; an id is found in all organizations of the person.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import localize
from django.utils.timezone import localtime
from django.views.decorators.http import require_GET

from messaging.consent import suppressions
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.routing import lanes
from messaging.console.studio import partial_pages, variants
from messaging.domain.channels import ALL
from messaging.models import Delivery, Message, Partial, ProviderAccount, Template
from messaging.store.archived import archive
from rme.core import errors, ids
from rme.crm import people
from rme.tenants.access.roles import Permission
from rme.tenants.audit import request_log
from rme.tenants.audit.request_log import RequestFilter
from rme.tenants.organizations import latest

LIMIT = 10
"""The most results of a kind."""
TERM_LIMIT = 320
PART_OF_ID = re.compile("[0-9a-f]{8,31}")


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was found, and its page."""

    title: str
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one kind."""

    title: str
    results: Sequence[Result]


def _show(request: HttpRequest) -> HttpResponseBase:
    """Return the results of a search; a single one is opened at once."""
    organizations = dict(access.own_organizations(request))
    if not organizations:
        raise PermissionDenied
    organization_id = request.GET.get("organization", "")
    if organization_id not in organizations:
        organization_id = latest.remembered(request)
    viewer = access.viewer_of(
        request, organization_id if organization_id in organizations else next(iter(organizations))
    )
    term = request.GET.get("q", "").replace("\0", "").strip()[:TERM_LIMIT]
    problem, groups = "", []
    if term:
        try:
            groups = find(request, viewer, term)
        except errors.Unavailable as error:
            problem = error.message
    results = [result for group in groups for result in group.results]
    if len(results) == 1:
        return HttpResponseRedirect(results[0].url)
    return access.show(
        request, viewer, "search", "Search", term=term, groups=groups, problem=problem
    )


show = admin.site.admin_view(require_GET(_show))


def find(request: HttpRequest, viewer: Viewer, term: str) -> list[Group]:
    """Return what was found, by kind; ten statements at most."""
    identifier = ids.parse(term.lower())
    groups = [
        Group("People", _people(viewer, term)),
        Group(
            "Messages",
            _messages(request, identifier) if identifier else _messages_from(viewer, term),
        ),
        Group("API requests", _requests(viewer, identifier) if identifier else []),
        Group("Suppressions", _suppressions(viewer, term)),
        Group("Templates", [] if identifier else _templates(viewer, term)),
        Group("Partials", [] if identifier else _partials(viewer, term)),
        Group("Provider accounts", [] if identifier else _accounts(viewer, term)),
    ]
    return [group for group in groups if group.results]


def _people(viewer: Viewer, term: str) -> list[Result]:
    return [
        Result(
            each.name or each.id,
            ", ".join(filter(None, [viewer.shown(each.email), viewer.shown(each.mobile)])),
            explanations.person_url(viewer, each.id),
        )
        for each in people.find(viewer.organization_id, term, limit=LIMIT)
    ]


def _messages(request: HttpRequest, identifier: UUID) -> list[Result]:
    """Return the message with an id, or that of the delivery with it."""
    condition = access.readable(request)
    rows = Message.objects.filter(condition, pk=identifier).values_list("pk", "organization_id")
    pairs = list(rows)
    if not pairs:
        deliveries = Delivery.objects.filter(condition, pk=identifier)
        pairs = list(deliveries.values_list("message_id", "organization_id"))
    if not pairs and (archived := archive().find(condition, identifier)):
        pairs = [(archived.message.pk, archived.message.organization_id)]
    return [
        Result(str(pk), owner, reverse("console:message", args=[owner, pk])) for pk, owner in pairs
    ]


def _messages_from(viewer: Viewer, term: str) -> list[Result]:
    """Return the latest messages whose ids begin with what was typed, which is part of an id."""
    digits = term.replace("-", "").lower()
    if not PART_OF_ID.fullmatch(digits):
        return []
    bounds = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    rows = Message.objects.filter(organization_id=viewer.organization_id, pk__range=bounds)
    return [
        Result(
            str(pk),
            f"accepted {localize(localtime(at, viewer.zone))}",
            reverse("console:message", args=[viewer.organization_id, pk]),
        )
        for pk, at in rows.order_by("-pk").values_list("pk", "created_at")[:LIMIT]
    ]


def _requests(viewer: Viewer, identifier: UUID) -> list[Result]:
    """Return the requests with a request id, as an error's answer names it."""
    if not viewer.may(Permission.SEE_SETTINGS):
        return []
    request_filter = RequestFilter(request_id=identifier)
    page = request_log.find(viewer.organization_id, request_filter, limit=LIMIT)
    url = reverse("console:requests", args=[viewer.organization_id])
    return [
        Result(str(row), f"{row.status} {row.code}", f"{url}?request_id={identifier}")
        for row in page.rows[:1]
    ]


def _suppressions(viewer: Viewer, term: str) -> list[Result]:
    region = viewer.organization.region
    address = suppressions.normalize_address(ALL, term, region)
    if address is None or not viewer.sees_contents:
        return []
    rows, _ = suppressions.find(
        viewer.organization_id, suppressions.SuppressionFilter(address=address), limit=LIMIT
    )
    return [
        Result(str(row), row.note, explanations.suppression_url(viewer, row.pk)) for row in rows
    ]


def _templates(viewer: Viewer, term: str) -> list[Result]:
    if not viewer.may(Permission.SEE_TEMPLATES):
        return []
    rows = Template.objects.filter(
        organization_id=viewer.organization_id, name__icontains=term
    ).order_by("name", "channel", "language")[:LIMIT]
    return [
        Result(
            row.name,
            f"{row.channel}, {row.language}",
            variants.url_of(row),
        )
        for row in rows
    ]


def _partials(viewer: Viewer, term: str) -> list[Result]:
    if not viewer.may(Permission.SEE_TEMPLATES):
        return []
    rows = Partial.objects.filter(
        organization_id=viewer.organization_id, name__icontains=term
    ).order_by("name")[:LIMIT]
    return [Result(row.name, "", partial_pages.url_of(row)) for row in rows]


def _accounts(viewer: Viewer, term: str) -> list[Result]:
    if not viewer.may(Permission.SEE_SETTINGS):
        return []
    rows = ProviderAccount.objects.filter(
        organization_id=viewer.organization_id, name__icontains=term
    ).order_by("name")[:LIMIT]
    return [Result(row.name, row.channel, lanes.account_url(row)) for row in rows]
