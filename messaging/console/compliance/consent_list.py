"""The entries of the consent ledger: by person, channel, category, decision and source."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.consent import entries
from messaging.consent.entries import LedgerFilter
from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm, person_field
from messaging.console.messages import explanations
from messaging.console.people import names
from messaging.domain.channels import ALL
from messaging.models import ConsentEntry
from messaging.policy import organization_policy
from rme.components.tables import Cell, Column, Target
from rme.core import errors, ids
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.tenants.access.roles import Permission

PAGE = 50
SCANNED = 5000
"""The entries that a page looks at, where no index has its filters."""
PEOPLE = 50
"""The most people that a search for a person filters by."""
CURRENT = "current"


class ConsentFilterForm(FilterForm):
    search_name: ClassVar[str] = "person"
    person = person_field()
    channel = forms.ChoiceField(required=False, label=_("Channel"))
    category = forms.ChoiceField(required=False, label=_("Category"))
    status = forms.ChoiceField(
        required=False,
        label=_("Decision"),
        choices=[("", _("Any decision")), *ConsentEntry.Status.choices],
    )
    source = forms.ChoiceField(required=False, label=_("Source"))
    entries = forms.ChoiceField(
        required=False,
        label=_("Entries"),
        choices=[("", _("All entries")), (CURRENT, _("Current decisions"))],
    )

    def __init__(self, viewer: Viewer, data: QueryDict) -> None:
        super().__init__(data)
        categories = sorted(organization_policy.of(viewer.organization_id).categories)
        if (category := data.get("category", "")) and category not in (*categories, ALL):
            categories.append(category)  # a category that is gone still has entries
        options = [(each, wording.category(each)) for each in (*categories, ALL)]
        self.offer("category", [("", gettext("Any category")), *options])
        channels = wording.channels(with_all=True).items()
        self.offer("channel", [("", gettext("Any channel")), *channels])
        sources = [(each, capfirst(wording.source(each))) for each in wording.SOURCES]
        self.offer("source", [("", gettext("Any source")), *sources])


@dataclass(frozen=True, slots=True)
class ConsentLine:
    """An entry in words."""

    entry: ConsentEntry
    person: str
    url: str
    evidence: str
    source: str

    @property
    def by(self) -> str:
        """Return where the decision was made, and who recorded it."""
        return ", ".join(filter(None, [self.source, self.entry.recorded_by]))

    @property
    def decision(self) -> str:
        """Return what was decided, such as `Opted out of marketing email`."""
        entry = self.entry
        return wording.decision(entry.status, entry.channel, entry.category)

    @property
    def colour(self) -> str:
        return "good" if self.entry.status == ConsentEntry.Status.OPTED_IN else "warn"


COLUMNS: list[Column[ConsentLine]] = [
    Column("person", _("Person"), lambda line: Cell(line.person)),
    Column("decision", _("Decision"), lambda line: Cell(line.decision, colour=line.colour), "wide"),
    Column("source", _("Source"), lambda line: Cell(str(capfirst(line.source)))),
    Column("recorded_by", _("Recorded by"), lambda line: Cell(line.entry.recorded_by)),
    Column("evidence", _("Evidence"), lambda line: Cell(line.evidence), "wide"),
    Column("decided", _("Decided"), lambda line: Cell(at=line.entry.occurred_at), "small"),
    Column(
        *("recorded", _("Recorded"), lambda line: Cell(at=line.entry.recorded_at)),
        is_shown=False,
    ),
]


def _target(viewer: Viewer, line: ConsentLine) -> Target:
    url = reverse("console:consent_entry", args=[viewer.organization_id, line.entry.pk])
    name = gettext("consent entry of %(person)s") % {"person": line.person}
    return Target(url, name, line.entry.occurred_at)


@access.page_for(Permission.SEE_PEOPLE)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the ledger, and the people whom the filter names."""
    form = ConsentFilterForm(viewer, request.GET)
    contacts, problem = _people(viewer, form)
    ledger_filter = _filter(form, contacts, request.GET.get("after", ""))
    rows, following = entries.page(viewer.organization_id, ledger_filter)
    contact_names = names.read(viewer, {row.contact_id for row in rows})
    return list_page.show(
        request,
        viewer,
        "compliance/consent",
        gettext("Consent"),
        columns=COLUMNS,
        lines=[_line(viewer, row, contact_names) for row in rows],
        target=partial(_target, viewer),
        form=form,
        problem=problem or contact_names.problem,
        people=[
            (explanations.person_url(viewer, each.id), _label(viewer, each)) for each in contacts
        ],
        following=following,
    )


@access.page_for(Permission.SEE_PEOPLE)
@require_GET
def show_one(request: HttpRequest, viewer: Viewer, entry_id: UUID) -> HttpResponseBase:
    """Return the page of an entry, with its place in the chain."""
    rows = ConsentEntry.objects.filter(organization_id=viewer.organization_id)
    row = get_object_or_404(rows, pk=entry_id)
    contact_names = names.read(viewer, [row.contact_id])
    return access.show(
        request,
        viewer,
        "compliance/entry",
        gettext("Consent entry"),
        problem=contact_names.problem,
        line=_line(viewer, row, contact_names),
    )


def _people(viewer: Viewer, form: ConsentFilterForm) -> tuple[list[ContactRecord], str]:
    """Return the people whom the filter names, and what keeps the platform from answering."""
    form.is_valid()
    text = form.cleaned_data.get("person", "")
    try:
        return people.find(viewer.organization_id, text, limit=PEOPLE) if text else [], ""
    except errors.Unavailable as error:
        return [], error.message


def _filter(form: ConsentFilterForm, contacts: list[ContactRecord], cursor: str) -> LedgerFilter:
    """Return what the form means; a form that is not valid filters by its valid fields."""
    cleaned = form.cleaned_data
    return LedgerFilter(
        contact_ids=[each.id for each in contacts] if cleaned.get("person") else None,
        channel=cleaned.get("channel") or None,
        category=cleaned.get("category") or None,
        status=cleaned.get("status") or None,
        source=cleaned.get("source") or None,
        history=cleaned.get("entries") != CURRENT,
        scanned=SCANNED,
        limit=PAGE,
        cursor=ids.parse(cursor),
    )


def _label(viewer: Viewer, person: ContactRecord) -> str:
    parts = [person.name, viewer.shown(person.email), viewer.shown(person.mobile)]
    return ", ".join(filter(None, parts)) or person.id


def _line(viewer: Viewer, entry: ConsentEntry, contact_names: names.Names) -> ConsentLine:
    return ConsentLine(
        entry,
        contact_names.of(entry.contact_id),
        explanations.person_url(viewer, entry.contact_id) if entry.contact_id else "",
        wording.evidence(entry.evidence, in_full=viewer.sees_addresses),
        wording.source(entry.source),
    )
