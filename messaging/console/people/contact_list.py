"""The contacts of an organization: those of the embedded platform, or a search of a remote one."""

from uuid import UUID

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, search_field
from messaging.console.messages import explanations
from rme.core import errors, ids
from rme.crm import people, platforms
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission

PAGE = 50
SEARCHED = ("first_name", "last_name", "email", "mobile", "phone")
"""The fields of which a search also finds a part, if no contact is found by its beginning."""
Row = Contact | ContactRecord


class ContactFilterForm(FilterForm):
    person = search_field("Email, phone, name or id")
    missing = forms.ChoiceField(
        required=False,
        label="Addresses",
        choices=[
            ("", "Any"),
            ("email", "No email address"),
            ("mobile", "No mobile number"),
            ("account", "No account"),
        ],
    )


@access.page_for(Permission.SEE_PEOPLE)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of contacts, newest first."""
    form = ContactFilterForm(request.GET)
    form.is_valid()
    is_embedded = platforms.get(viewer.organization_id).kind == platforms.EMBEDDED
    rows: list[Row] = []
    problem, following = "", None
    if is_embedded:
        rows, following = _embedded(viewer, form, ids.parse(request.GET.get("after", "")))
    else:
        del form.fields["missing"]
        try:
            rows = [*people.find(viewer.organization_id, _text(form), limit=PAGE)]
        except errors.Unavailable as error:
            problem = error.message
    return access.show(
        request,
        viewer,
        "people/contacts",
        "Contacts",
        form=form,
        is_embedded=is_embedded,
        problem=problem,
        lines=[_line(viewer, row) for row in rows],
        following=following,
    )


def _text(form: ContactFilterForm) -> str:
    return str(form.cleaned_data.get("person", ""))


def _embedded(
    viewer: Viewer, form: ContactFilterForm, cursor: UUID | None
) -> tuple[list[Row], UUID | None]:
    """Return a page of stored contacts, and the id after which the next page begins."""
    rows = Contact.objects.filter(organization_id=viewer.organization_id)
    if text := _text(form):
        contacts = people.find(viewer.organization_id, text, limit=PAGE)
        parts = [Q(**{f"{name}__icontains": text}) for name in SEARCHED]
        condition = Q(pk__in=[each.id for each in contacts])
        rows = rows.filter(condition if contacts else Q(*parts, _connector=Q.OR))
    if missing := form.cleaned_data.get("missing"):
        rows = rows.filter(**{missing: None if missing == "account" else ""})
    if cursor:
        rows = rows.filter(pk__lt=cursor)
    page = list(rows.select_related("account").order_by("-pk")[: PAGE + 1])
    return [*page[:PAGE]], page[PAGE - 1].pk if len(page) > PAGE else None


def _line(viewer: Viewer, row: Row) -> dict[str, object]:
    """Return a contact's row of the table."""
    name = str(row) if isinstance(row, Contact) else row.name
    email, mobile = viewer.shown(row.email), viewer.shown(row.mobile)
    url = explanations.person_url(viewer, str(row.id))
    return {
        "row": row,
        "name": name or email or mobile or str(row.id),
        "url": url,
        "email": email,
        "mobile": mobile,
    }
