"""Suppressions: the list, adding one, and the page of one, where it is changed and lifted."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.consent import gate_lock, suppressions
from messaging.consent.suppressions import ListEntry, NewSuppression
from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.actions import bulk_actions
from messaging.console.actions.action_pages import ActionReasonForm
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm, MomentField, person_field
from messaging.console.messages import explanations
from messaging.console.people import names
from messaging.console.people.person_forms import CHANNELS
from messaging.content import compose
from messaging.domain.channels import ALL, Channel
from messaging.models import BulkAction, Suppression
from rme.components.tables import Cell, Column, Target
from rme.core import errors, ids
from rme.core.addresses import phone_problem, phone_readings, valid_phone
from rme.crm import people
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

PAGE = 50
PEOPLE = 50
"""The most people that a search filters by."""
Reason = Suppression.Reason
SOURCES = {
    "ADMIN": _("Console"),
    "API": _("API"),
    "IMPORT": _("Import"),
    "PROVIDER": _("Provider"),
    "SMS_KEYWORD": _("SMS"),
}


class SuppressionFilterForm(FilterForm):
    search_name: ClassVar[str] = "recipient"
    recipient = person_field(_("Person or address"))
    channel = forms.ChoiceField(
        required=False, label=_("Channel"), choices=[("", _("Any channel")), *CHANNELS]
    )
    reason = forms.ChoiceField(
        required=False, label=_("Reason"), choices=[("", _("Any reason")), *Reason.choices]
    )
    source = forms.ChoiceField(
        required=False, label=_("Source"), choices=[("", _("Any source")), *SOURCES.items()]
    )


COLUMNS: list[Column[dict[str, Any]]] = [
    Column("recipient", _("Person or address"), lambda line: Cell(line["whom"]), "wide"),
    Column("channel", _("Channel"), lambda line: Cell(line["channel"])),
    Column("reason", _("Reason"), lambda line: Cell(line["row"].get_reason_display())),
    Column("source", _("Source"), lambda line: Cell(str(line["source"]))),
    Column("note", _("Note"), lambda line: Cell(line["row"].note), "wide"),
    Column("added", _("Added"), lambda line: Cell(at=line["row"].created_at)),
    Column("expires", _("Expires"), lambda line: _expiry(line["row"])),
]


def _expiry(row: Suppression) -> Cell:
    return Cell(at=row.expires_at) if row.expires_at else Cell(gettext("Never"))


def _target(viewer: Viewer, line: dict[str, Any]) -> Target:
    url = explanations.suppression_url(viewer, line["row"].pk)
    name = gettext("suppression of %(whom)s") % {"whom": line["whom"]}
    return Target(url, name, line["row"].created_at)


@access.page_for(Permission.SEE_PEOPLE)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the suppressions in force, newest first."""
    form = SuppressionFilterForm(request.GET)
    exact = form.valid_values()
    recipient = exact.pop("recipient", "")
    rows, problem = suppressions.current(viewer.organization_id).filter(**exact), ""
    if recipient:
        condition, problem = _about(viewer, recipient)
        rows = rows.filter(condition)
    if cursor := ids.parse(request.GET.get("after", "")):
        rows = rows.filter(pk__lt=cursor)
    page = list(rows.order_by("-pk")[: PAGE + 1])
    contact_names = names.read(viewer, {row.contact_id for row in page})
    return list_page.show(
        request,
        viewer,
        "people/suppressions",
        gettext("Suppressions"),
        columns=COLUMNS,
        lines=[_words(viewer, row, contact_names) for row in page[:PAGE]],
        target=partial(_target, viewer),
        form=form,
        problem=problem or contact_names.problem,
        following=page[PAGE - 1].pk if len(page) > PAGE else None,
    )


def _about(viewer: Viewer, text: str) -> tuple[Q, str]:
    """Return which suppressions a search means, and what keeps the platform from answering."""
    contacts, problem = [], ""
    try:
        contacts = people.find(viewer.organization_id, text, limit=PEOPLE)
    except errors.Unavailable as error:
        problem = error.message
    address = suppressions.normalize_address(ALL, text, viewer.organization.region)
    if not contacts and not address:
        return Q(address__icontains=text) | Q(contact_id=text), problem
    addresses = [compose.address_of(each, channel) for each in contacts for channel in Channel]
    return suppressions.about([each.id for each in contacts], [address, *addresses]), problem


def _words(viewer: Viewer, row: Suppression, contact_names: names.Names) -> dict[str, Any]:
    """Return a suppression in words."""
    return {
        "row": row,
        "channel": wording.channel(row.channel),
        "whom": contact_names.of(row.contact_id) if row.contact_id else viewer.shown(row.address),
        "why": wording.suppressed_by(row.reason),
        "source": SOURCES.get(row.source, row.source),
        "person_url": explanations.person_url(viewer, row.contact_id) if row.contact_id else "",
        "is_protected": row.reason in suppressions.PROTECTED,
    }


class ExpiryField(MomentField):
    """A time in the future, or none: what ends a suppression now needs a reason."""

    def __init__(self) -> None:
        super().__init__(required=False, label=_("Expires (never if empty)"))

    def validate(self, value: datetime | None) -> None:
        super().validate(value)
        if value and value <= timezone.now():
            raise forms.ValidationError(gettext("Choose a time in the future."))


# --- adding -------------------------------------------------------------------------------------
class NewSuppressionForm(forms.Form):
    """An address or a contact to suppress, and why."""

    channel = forms.ChoiceField(label=_("Channel"), choices=[("", _("Choose")), *CHANNELS])
    address = forms.CharField(
        required=False,
        max_length=320,
        label=_("Address"),
        help_text=_("An email address or a phone number."),
    )
    contact = forms.CharField(
        required=False,
        max_length=320,
        label=_("Or a person"),
        help_text=_(
            "An email address, phone number, name or id of a contact. Suppresses the contact at "
            "all addresses."
        ),
    )
    reason = forms.ChoiceField(label=_("Reason"), choices=Reason.choices, initial=Reason.MANUAL)
    note = forms.CharField(required=False, max_length=500, label=_("Note"))
    expires_at = ExpiryField()

    def __init__(self, viewer: Viewer, data: Mapping[str, str] | None, contact: str = "") -> None:
        super().__init__(data, auto_id="new_%s", label_suffix="", initial={"contact": contact})
        self.viewer = viewer

    def clean_contact(self) -> str:
        """Return the id of the one contact that the text means."""
        text = self.cleaned_data["contact"]
        try:
            contacts = people.find(self.viewer.organization_id, text, limit=2) if text else []
        except errors.Unavailable as error:
            raise forms.ValidationError(error.message) from error
        if text and not contacts:
            raise forms.ValidationError(
                gettext("No contact found. Try the email address or the id.")
            )
        if len(contacts) > 1:
            raise forms.ValidationError(gettext("Several contacts match. Type the id of one."))
        return contacts[0].id if contacts else ""

    def clean(self) -> dict[str, Any]:
        """Require an address of the channel or a person, not both."""
        cleaned = self.cleaned_data
        channel, address = cleaned.get("channel"), cleaned.get("address")
        if "contact" in cleaned and bool(address) == bool(cleaned["contact"]):
            self.add_error(None, gettext("Enter either an address or a person."))
        elif address and channel:
            region = self.viewer.organization.region
            cleaned["address"] = suppressions.normalize_address(channel, address, region)
            is_national = "@" not in address and not address.lstrip().startswith("+")
            if len(phone_readings(address, region)) > 1:
                self.add_error(
                    "address",
                    gettext("This %(problem)s.") % {"problem": phone_problem(address, region)},
                )
            elif not cleaned["address"] or (is_national and not valid_phone(address, region)):
                self.add_error("address", gettext("This isn't an address of that channel."))
        return cleaned

    def add(self) -> ListEntry:
        """Put the entry on the list."""
        cleaned = self.cleaned_data
        entry = NewSuppression(
            self.viewer.organization_id,
            cleaned["channel"],
            cleaned["address"],
            cleaned["reason"],
            "ADMIN",
            contact_id=cleaned["contact"],
            note=cleaned["note"],
            expires_at=cleaned["expires_at"],
        )
        (listed,) = suppressions.add(entry.organization_id, [entry])
        return listed


@access.page_for(Permission.CHANGE_PEOPLE)
def new(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a new suppression, which may name a contact; a POST adds it."""
    data = request.POST if request.method == "POST" else None
    form = NewSuppressionForm(viewer, data, request.GET.get("contact", "")[:320])
    if form.is_valid():
        with transaction.atomic():
            entry = form.add()
            if entry.new:
                note(viewer, Action.ADDED, entry.row, changes=access.values(**form.cleaned_data))
        if entry.new:
            messages.success(request, gettext("The suppression is added."))
        else:
            messages.warning(request, gettext("This is already on the list."))
        return HttpResponseRedirect(explanations.suppression_url(viewer, entry.row.pk))
    return access.show(
        request,
        viewer,
        "people/new_suppression",
        gettext("New suppression"),
        form=form,
    )


# --- one suppression ------------------------------------------------------------------------------
class SuppressionForm(forms.ModelForm):  # type: ignore[type-arg]
    """The note and the expiry of a suppression. What the recipient decided never expires here."""

    expires_at = ExpiryField()

    class Meta:
        model = Suppression
        fields = ("note", "expires_at")

    def __init__(self, data: QueryDict | None, row: Suppression) -> None:
        super().__init__(data, instance=row, auto_id="suppression_%s", label_suffix="")
        if row.reason in suppressions.PROTECTED:
            del self.fields["expires_at"]


@access.page_for(Permission.SEE_PEOPLE)
def show_one(request: HttpRequest, viewer: Viewer, suppression_id: UUID) -> HttpResponseBase:
    """Return the page of a suppression; a POST changes its note and its expiry."""
    row = get_object_or_404(suppressions.current(viewer.organization_id), pk=suppression_id)
    form = SuppressionForm(request.POST if request.method == "POST" else None, row)
    if request.method == "POST":
        viewer.require(Permission.CHANGE_PEOPLE)
        if form.is_valid():
            with transaction.atomic():
                gate_lock.take_exclusive([viewer.organization_id])
                form.save()
                suppressions.report_saved(Suppression.objects.filter(pk=row.pk), new=False)
                note(viewer, Action.CHANGED, row, changes=audit.of_form(form, ()))
            messages.success(request, gettext("The suppression is saved."))
            return HttpResponseRedirect(request.path)
    contact_names = names.read(viewer, [row.contact_id])
    return access.show(
        request,
        viewer,
        "people/suppression",
        gettext("Suppression"),
        form=form,
        problem=contact_names.problem,
        **_words(viewer, row, contact_names),
    )


@access.page
def lift(request: HttpRequest, viewer: Viewer, suppression_id: UUID) -> HttpResponseBase:
    """Return the page that asks why a suppression is lifted; a POST lifts it."""
    viewer.require(Permission.CHANGE_PEOPLE)
    row = get_object_or_404(suppressions.current(viewer.organization_id), pk=suppression_id)
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    whom = viewer.shown(row.address) or row.contact_id
    channel = wording.channel(row.channel)
    if form.is_valid():
        reason = form.cleaned_data["why"]
        words = {"whom": whom, "channel": channel, "reason": row.get_reason_display()}
        scope = gettext("%(whom)s, %(channel)s: %(reason)s") % words
        bulk_actions.start(
            viewer,
            BulkAction.Kind.LIFT,
            [row.pk],
            scope=scope,
            reason=reason,
            contact_id=row.contact_id,
        )
        messages.success(request, gettext("Lifted: %(scope)s.") % {"scope": scope})
        url = reverse("console:suppressions", args=[viewer.organization_id])
        if row.contact_id:
            url = explanations.person_url(viewer, row.contact_id)
        return HttpResponseRedirect(url)
    return access.show(
        request,
        viewer,
        "people/lift",
        gettext("Lift this suppression?"),
        form=form,
        row=row,
        whom=whom,
        channel=channel,
        why=wording.suppressed_by(row.reason),
        is_protected=row.reason in suppressions.PROTECTED,
    )
