"""The contacts of an organization: those of the embedded platform, or a search of a remote one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm, person_field
from messaging.console.messages import explanations
from rme.components.tables import Cell, Column, Target
from rme.core import errors, ids
from rme.crm import people, platforms
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission
from rme.tenants.organizations import languages

PAGE = 50
MATCHES = 1000
"""The most contacts that a search lists."""
TICKED = "contact"
"""The field of the boxes."""
Row = Contact | ContactRecord


class ContactFilterForm(FilterForm):
    search_name: ClassVar[str] = "person"
    person = person_field()
    missing = forms.ChoiceField(
        required=False,
        label=_("Missing"),
        choices=[
            ("", _("No filter")),
            ("email", _("Email address")),
            ("mobile", _("Mobile number")),
            ("account", _("Account")),
        ],
    )


class ContactPage(NamedTuple):
    """Contacts, and the id after which the next page begins; None on the last."""

    rows: Sequence[Row] = ()
    following: UUID | None = None
    is_cut: bool = False
    """Whether more contacts may match than a search lists."""


@dataclass(frozen=True, slots=True)
class ContactLine:
    """A contact in words."""

    row: Row
    name: str
    url: str
    email: str
    mobile: str


def _columns(*, is_embedded: bool) -> list[Column[ContactLine]]:
    return [
        Column("name", _("Name"), lambda line: Cell(line.name), "wide"),
        Column("email", _("Email"), lambda line: Cell(line.email), "wide"),
        Column("mobile", _("Mobile"), lambda line: Cell(line.mobile)),
        Column("language", _("Language"), lambda line: Cell(_language(line))),
        Column("zone", _("Time zone"), lambda line: Cell(line.row.zone or "")),
        *([Column("account", _("Account"), _account)] if is_embedded else []),
    ]


def _language(line: ContactLine) -> str:
    return languages.name(line.row.language) if line.row.language else ""


def _account(line: ContactLine) -> Cell:
    account = line.row.account if isinstance(line.row, Contact) else None
    return Cell(str(account or ""))


@access.page_for(Permission.SEE_PEOPLE)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of contacts, newest first."""
    form = ContactFilterForm(request.GET)
    form.is_valid()
    is_embedded = platforms.get(viewer.organization_id).kind == platforms.EMBEDDED
    page, problem = ContactPage(), ""
    if not is_embedded:
        del form.fields["missing"]
    try:
        if is_embedded:
            page = _embedded(viewer, form, ids.parse(request.GET.get("after", "")))
        else:
            page = ContactPage(people.find(viewer.organization_id, _text(form), limit=PAGE))
    except errors.Unavailable as error:
        problem = error.message
    return list_page.show(
        request,
        viewer,
        "people/contacts",
        gettext("Contacts"),
        columns=_columns(is_embedded=is_embedded),
        lines=[_line(viewer, row) for row in page.rows],
        target=partial(_target, viewer),
        ticks=TICKED if is_embedded and viewer.may_change_people else "",
        form=form,
        is_embedded=is_embedded,
        problem=problem,
        following=page.following,
        cut_after=MATCHES if page.is_cut else 0,
    )


def _text(form: ContactFilterForm) -> str:
    return str(form.cleaned_data.get("person", ""))


def _embedded(viewer: Viewer, form: ContactFilterForm, cursor: UUID | None) -> ContactPage:
    """Return a page of stored contacts, the newest first. Raise Unavailable."""
    contacts, is_cut = Contact.objects.filter(organization_id=viewer.organization_id), False
    if text := _text(form):
        by_parts = viewer.sees_addresses
        matches = people.suggest(viewer.organization_id, text, limit=MATCHES + 1, by_parts=by_parts)
        contacts = contacts.filter(pk__in=[match.id for match in matches[:MATCHES]])
        is_cut = len(matches) > MATCHES
    if missing := form.cleaned_data.get("missing"):
        contacts = contacts.filter(**{missing: None if missing == "account" else ""})
    if cursor:
        contacts = contacts.filter(pk__lt=cursor)
    rows = list(contacts.select_related("account").order_by("-pk")[: PAGE + 1])
    return ContactPage(rows[:PAGE], rows[PAGE - 1].pk if len(rows) > PAGE else None, is_cut)


def _line(viewer: Viewer, row: Row) -> ContactLine:
    name = str(row) if isinstance(row, Contact) else row.name
    email, mobile = viewer.shown(row.email), viewer.shown(row.mobile)
    url = explanations.person_url(viewer, str(row.id))
    return ContactLine(row, name or email or mobile or str(row.id), url, email, mobile)


def _target(viewer: Viewer, line: ContactLine) -> Target:
    key = str(line.row.id)
    peek_url = reverse("console:person_peek", args=[viewer.organization_id, key])
    return Target(line.url, line.name, key=key, peek_url=peek_url)
