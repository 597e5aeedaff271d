"""Contacts of the embedded platform: adding, changing, deleting and merging them."""

from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.actions.action_pages import ActionReasonForm
from messaging.console.messages import explanations
from messaging.console.people import contact_merge
from messaging.console.people.contact_form import ContactForm
from messaging.console.people.contact_list import PAGE
from rme.core import ids
from rme.crm import people
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

MOST_TYPED = 254
"""The longest text that is searched for: an address."""


@access.page_for(Permission.CHANGE_PEOPLE)
def edit(request: HttpRequest, viewer: Viewer, contact_id: UUID | None = None) -> HttpResponseBase:
    """Return the form of a contact, or of a new one; a POST saves it."""
    row = Contact(organization_id=viewer.organization_id)
    if contact_id:
        rows = Contact.objects.filter(organization_id=viewer.organization_id)
        row = get_object_or_404(rows.select_related("account"), pk=contact_id)
    title = _("Edit %(contact)s") % {"contact": row} if contact_id else _("New contact")
    form = ContactForm(request.POST if request.method == "POST" else None, row)
    if form.is_valid():
        with transaction.atomic():
            form.save()
            if form.changed_data:
                action = Action.CHANGED if contact_id else Action.ADDED
                note(viewer, action, row, changes=audit.of_form(form, ()))
        messages.success(request, _("%(contact)s is saved.") % {"contact": row})
        return HttpResponseRedirect(explanations.person_url(viewer, str(row.pk)))
    return access.show(
        request,
        viewer,
        "people/contact",
        title,
        form=form,
        contact_id=contact_id,
    )


@access.page_for(Permission.CHANGE_PEOPLE)
def delete(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Ask whether the ticked contacts are to be deleted; a POST deletes them."""
    rows = _ticked(request, viewer)
    count = len(rows)
    if not rows:
        return _refuse(request, viewer, _("Tick the contacts to delete first."))
    if request.method == "POST":
        with transaction.atomic():
            audit.record(viewer.actor, audit.deletions(rows, ""))
            Contact.objects.filter(pk__in=[row.pk for row in rows]).delete()
        done = ngettext("%(number)s contact is deleted.", "%(number)s contacts are deleted.", count)
        messages.success(request, done % {"number": count})
        return HttpResponseRedirect(_list_url(viewer))
    title = ngettext("Delete %(number)s contact?", "Delete %(number)s contacts?", count)
    return access.show(request, viewer, "people/delete", title % {"number": count}, rows=rows)


@access.page_for(Permission.CHANGE_PEOPLE)
def merge(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Show what merging the second chosen contact into the first would do; a POST does it."""
    rows = _ticked(request, viewer)
    if len(rows) == 1 and request.method == "GET":
        return _choose_twin(request, viewer, rows[0])
    if len(rows) != 2:
        return _refuse(request, viewer, _("Tick exactly two contacts to merge."))
    stays, goes = rows
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        contact_merge.merge(stays, goes, actor=viewer.actor, reason=form.cleaned_data["why"])
        done = _("%(duplicate)s is merged into %(contact)s.")
        messages.success(request, done % {"duplicate": goes, "contact": stays})
        return HttpResponseRedirect(explanations.person_url(viewer, str(stays.pk)))
    preview = contact_merge.preview(stays, goes)
    return access.show(
        request,
        viewer,
        "people/merge",
        _("Merge two contacts"),
        form=form,
        stays=stays,
        goes=goes,
        moved=[(kind, count) for kind, count in preview.counts.items() if count],
        filled=[
            (Contact._meta.get_field(name).verbose_name, value)  # type: ignore[union-attr]
            for name, value in preview.filled.items()
        ],
        consent=[
            wording.decision(status, channel, category)
            for channel, category, status in preview.consent
        ],
    )


def _choose_twin(request: HttpRequest, viewer: Viewer, stays: Contact) -> HttpResponseBase:
    """Return the page that looks for the contact to merge into this one."""
    text = request.GET.get("q", "").strip()
    matches = people.find(viewer.organization_id, text[:MOST_TYPED], limit=PAGE) if text else []
    return access.show(
        request,
        viewer,
        "people/merge_choose",
        _("Merge %(contact)s") % {"contact": stays},
        stays=stays,
        text=text,
        matches=[
            (each.id, each.name or each.id, viewer.shown(each.email or each.mobile))
            for each in matches
            if each.id != str(stays.pk)
        ],
    )


def _ticked(request: HttpRequest, viewer: Viewer) -> list[Contact]:
    """Return the contacts that the address names, in its order."""
    keys = [ids.parse(text) for text in request.GET.getlist("contact")[:PAGE]]
    rows = Contact.objects.filter(organization_id=viewer.organization_id)
    contacts = rows.in_bulk([key for key in keys if key])
    return [contacts[key] for key in dict.fromkeys(keys) if key in contacts]


def _refuse(request: HttpRequest, viewer: Viewer, text: str) -> HttpResponseBase:
    messages.warning(request, text)
    return HttpResponseRedirect(_list_url(viewer))


def _list_url(viewer: Viewer) -> str:
    return reverse("console:contacts", args=[viewer.organization_id])
