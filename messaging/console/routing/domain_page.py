"""Sender domains: the list, and a domain with the records to publish and what DNS has of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.routing import lanes
from messaging.console.routing.domain_form import DomainForm
from messaging.domain.channels import Channel
from messaging.models import SenderDomain
from messaging.policy import domain_checks, domain_records, organization_policy
from messaging.policy.domain_records import Record, RecordFinding, RecordState
from rme.core import errors
from rme.core.http import checks
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

PAGE = 100
STATES = {
    RecordState.RIGHT: (gettext_lazy("Correct"), "good"),
    RecordState.WRONG: (gettext_lazy("Wrong"), "bad"),
    RecordState.MISSING: (gettext_lazy("Missing"), "bad"),
    RecordState.UNSET: (gettext_lazy("Unknown"), "warn"),
    RecordState.NO_ANSWER: (gettext_lazy("No answer"), "warn"),
}
NOT_CHECKED = (gettext_lazy("Not checked"), "info")
SETUP = "setup"
"""In the address of a domain that was just added: the page asks for what it still needs."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record of a domain: what to publish, and what was found."""

    record: Record
    state: str
    colour: str
    text: str


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the domains, the default one first."""
    typed = request.GET.get("from", "")
    start = int(typed) if typed.isdecimal() and len(typed) < 7 else 0
    rows = list(_rows(viewer).order_by("-is_default", "domain")[start : start + PAGE + 1])
    return access.show(
        request,
        viewer,
        "routing/domains",
        _("Sender domains"),
        domains=[
            (row, lines, _is_wrong(lines))
            for row in rows[:PAGE]
            for lines in [_lines(row, row.spf)]
        ],
        following=start + PAGE if len(rows) > PAGE else None,
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
        back=lanes.url(viewer),
    )


@access.page_for(Permission.SEE_SETTINGS)
def add(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a new domain; a POST adds it and looks its records up."""
    viewer.require(Permission.CHANGE_SETTINGS)
    row = SenderDomain(organization_id=viewer.organization_id)
    form = DomainForm(
        row,
        _suggested(viewer),
        request.POST if request.method == "POST" else None,
        is_default=not _rows(viewer).filter(is_default=True).exists(),
    )
    if form.is_valid():
        _save(viewer, form)
        _check(request, viewer, row)
        return HttpResponseRedirect(f"{_url(row)}?{SETUP}")
    return _show(request, viewer, _("Add a sender domain"), form=form)


@access.page_for(Permission.SEE_SETTINGS)
def show_one(request: HttpRequest, viewer: Viewer, domain_id: int) -> HttpResponseBase:
    """Return a domain; a POST does what its button says."""
    row = get_object_or_404(_rows(viewer), pk=domain_id)
    suggested_spf = _suggested(viewer)
    form = DomainForm(row, suggested_spf)
    if request.method == "POST":
        viewer.require(Permission.CHANGE_SETTINGS)
        button = request.POST.get("do", "")
        if button == "save":
            form = DomainForm(row, suggested_spf, request.POST)
            if form.is_valid():
                _save(viewer, form)
                _check(request, viewer, row)
                return HttpResponseRedirect(_url(row))
            row.refresh_from_db()
        else:
            is_sure = button != "delete" or "sure" in request.POST
            act = _ACTS.get(button) if is_sure else None
            if act is None:
                messages.error(request, _("Nothing was done. Choose one of the buttons."))
                return HttpResponseRedirect(_url(row))
            return HttpResponseRedirect(act(request, viewer, row))
    found = checks.find_each(viewer.organization_id, [_check_name(row)])
    return _show(
        request,
        viewer,
        row.shown,
        row=row,
        form=form,
        is_open=bool(form.errors) or (SETUP in request.GET and not row.dkim_selector),
        lines=(lines := _lines(row, row.spf or suggested_spf)),
        is_wrong=_is_wrong(lines),
        check=found.get(_check_name(row)),
    )


def _show(request: HttpRequest, viewer: Viewer, title: str, **context: Any) -> HttpResponseBase:
    return access.show(
        request,
        viewer,
        "routing/domain",
        title,
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
        back=_list_url(viewer),
        **context,
    )


def _rows(viewer: Viewer) -> Any:
    return SenderDomain.objects.filter(organization_id=viewer.organization_id)


def _url(row: SenderDomain) -> str:
    return reverse("console:domain", args=[row.organization_id, row.pk])


def _list_url(viewer: Viewer) -> str:
    return reverse("console:domains", args=[viewer.organization_id])


def _suggested(viewer: Viewer) -> str:
    """Return the mechanism of the first account for email whose provider is known to have one."""
    accounts = organization_policy.of(viewer.organization_id).accounts
    mechanisms = (
        each.provider.spf_mechanism
        for each in accounts
        if each.channel is Channel.EMAIL and each.provider
    )
    return next(filter(None, mechanisms), "")


def _save(viewer: Viewer, form: DomainForm) -> None:
    """Store a domain, with audit. A new default replaces the one before."""
    row: SenderDomain = form.instance
    action = Action.CHANGED if row.pk else Action.ADDED
    changes = audit.of_form(form, ())
    with transaction.atomic():
        if row.is_default:
            for other in _rows(viewer).filter(is_default=True).exclude(pk=row.pk):
                _rows(viewer).filter(pk=other.pk).update(is_default=False)
                demotion = {"is_default": ["True", "False"]}
                access.note(viewer, Action.CHANGED, other, changes=demotion)
        if action is Action.ADDED:
            row.save()
        elif changes:  # only these: a check may be storing the others
            row.save(update_fields=list(changes))
        if changes:
            access.note(viewer, action, row, changes=changes)
    organization_policy.forget(row.organization_id)


def _check(request: HttpRequest, viewer: Viewer, row: SenderDomain) -> str:
    """Start to look a domain's records up; the next page shows what was found."""
    work = domain_checks.check_one
    organization_id = viewer.organization_id
    try:
        checks.start(request, organization_id, _check_name(row), work, organization_id, row.pk)
    except errors.RateLimited as refusal:
        messages.warning(
            request, _("The records weren't checked. %(reason)s") % {"reason": refusal.message}
        )
    return _url(row)


def _verify(request: HttpRequest, viewer: Viewer, row: SenderDomain) -> str:
    """Mark a domain as verified: a superuser confirms that the organization owns it."""
    if not viewer.user.is_superuser:  # owners could claim any domain
        raise PermissionDenied
    with transaction.atomic():
        _rows(viewer).filter(pk=row.pk).update(verified_at=Now())
        access.note(viewer, Action.CHANGED, row, text="marked as verified")
    organization_policy.forget(row.organization_id)
    messages.success(request, _("%(domain)s is verified for sending.") % {"domain": row})
    return _url(row)


def _delete(request: HttpRequest, viewer: Viewer, row: SenderDomain) -> str:
    with transaction.atomic():
        access.note(viewer, Action.DELETED, row, changes=audit.values_of(row, ()))
        row.delete()
    organization_policy.forget(row.organization_id)
    messages.success(request, _("%(domain)s is deleted.") % {"domain": row})
    return _list_url(viewer)


_ACTS: dict[str, Callable[[HttpRequest, Viewer, SenderDomain], str]] = {
    "check": _check,
    "verify": _verify,
    "delete": _delete,
}
"""What a POST does, by its `do`; an act returns the address to go to."""


def _check_name(row: SenderDomain) -> str:
    return f"domain {row.pk}"


def _is_wrong(lines: Sequence[RecordLine]) -> bool:
    """Return whether the last check found a record to be missing or wrong."""
    return any(line.colour == "bad" for line in lines)


def _lines(row: SenderDomain, spf: str) -> Sequence[RecordLine]:
    """Return the records of a domain, with what the last check found."""
    findings = {each["record"]: RecordFinding.of_json(each) for each in row.findings}
    lines = []
    for record in domain_records.to_publish(row.domain, spf, row.dkim_selector):
        finding = findings.get(record.kind)
        words, colour = STATES[finding.state] if finding else NOT_CHECKED
        text = wording.said(finding.text if finding else "")
        lines.append(RecordLine(record, str(words), colour, text))
    return lines
