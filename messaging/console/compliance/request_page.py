"""The page of one request: its kind, its effects, the decision, and the file."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from messaging.consent import erasure, tasks
from messaging.consent.privacy import requests
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.compliance.request_forms import CarryOutForm, RefusalForm
from messaging.console.compliance.request_list import line
from messaging.console.messages import explanations
from messaging.console.people import names
from messaging.models import PrivacyRequest
from rme.tenants.access.roles import Permission

Kind, State = PrivacyRequest.Kind, PrivacyRequest.State
EFFECTS = {
    "stopped": _("scheduled or waiting messages that are cancelled"),
    "deliveries": _("messages that lose content, address and details"),
    "consent": _("consent entries that lose the person and the evidence"),
    "suppressions": _("suppressions of the person that are deleted"),
    "devices": _("devices that are deleted"),
}
"""What an erasure does, by the name of its count."""
DECIDED = _("This request has already been decided.")


@access.page_for(Permission.SEE_PEOPLE)
def show(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponseBase:
    """Return the page of a request; a POST carries it out or refuses it."""
    row = _row(viewer, request_id)
    carry_out, refusal = CarryOutForm(label_suffix=""), RefusalForm(label_suffix="")
    if request.method == "POST":
        viewer.require(Permission.CHANGE_PEOPLE)
        if request.POST.get("do") == "refuse":
            refusal = RefusalForm(request.POST, label_suffix="")
            is_done = _refuse(request, viewer, row, refusal)
        else:
            carry_out = CarryOutForm(request.POST, label_suffix="")
            is_done = _order(request, viewer, row, carry_out)
        if is_done:
            return HttpResponseRedirect(request.path)
    contact_names = names.read(viewer, [row.contact_id])
    is_open = row.state == State.OPEN
    return access.show(
        request,
        viewer,
        "compliance/request",
        str(row),
        line=line(viewer, row, contact_names),
        row=row,
        problem=contact_names.problem,
        person_url=explanations.person_url(viewer, row.contact_id) if row.contact_id else "",
        running=row.state == State.RUNNING,
        effects=_effects(row) if is_open and row.kind == Kind.ERASURE else [],
        forms=(carry_out, refusal) if is_open and viewer.may_change_people else None,
        file=requests.file_of(row) if row.kind == Kind.EXPORT else None,
        may_download=_may_download(viewer),
    )


def _row(viewer: Viewer, request_id: UUID) -> PrivacyRequest:
    privacy_requests = PrivacyRequest.objects.filter(organization_id=viewer.organization_id)
    return get_object_or_404(privacy_requests, pk=request_id)


def _order(request: HttpRequest, viewer: Viewer, row: PrivacyRequest, form: forms.Form) -> bool:
    """Order the request to be carried out; return whether the form is done with."""
    if not form.is_valid():
        return False
    if requests.order(row, viewer.actor):
        tasks.request_answers()
        messages.success(request, gettext("Started. The result appears here."))
    else:
        messages.error(request, DECIDED)
    return True


def _refuse(request: HttpRequest, viewer: Viewer, row: PrivacyRequest, form: forms.Form) -> bool:
    """Refuse the request; return whether the form is done with."""
    if not form.is_valid():
        return False
    if requests.refuse(row, form.cleaned_data["reason"], viewer.actor):
        messages.success(request, gettext("Refused. Tell the person the reason."))
    else:
        messages.error(request, DECIDED)
    return True


def _effects(row: PrivacyRequest) -> list[tuple[int, str]]:
    """Return what the erasure would do, as numbers and words."""
    if not row.contact_id:
        return []
    counts = erasure.preview(row.organization_id, row.contact_id)
    return [(count, str(EFFECTS[name])) for name, count in counts.items() if count]


def _may_download(viewer: Viewer) -> bool:
    """Return whether the person may read all that a file has."""
    needed = (Permission.CHANGE_PEOPLE, Permission.SEE_CONTENTS, Permission.SEE_ADDRESSES)
    return all(viewer.may(each) for each in needed)


@access.page_for(Permission.CHANGE_PEOPLE)
@require_POST
def download(request: HttpRequest, viewer: Viewer, request_id: UUID) -> HttpResponseBase:
    """Return the file of a data export; each download stands in the audit."""
    viewer.require(Permission.SEE_CONTENTS)
    viewer.require(Permission.SEE_ADDRESSES)
    row = _row(viewer, request_id)
    content = requests.download(row, viewer.actor)
    if content is None:
        raise Http404
    response = HttpResponse(content, content_type="application/zip")
    name = f"data-export-{row.pk}"
    response["Content-Disposition"] = f'attachment; filename="{name}.zip"'
    response["Cache-Control"] = "no-store"
    return response
