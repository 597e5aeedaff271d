"""What the studio's page asks for while a person types: the rendering, the draft, contacts.

Nothing is stored but the draft. The HTML of a rendering is a document of its own, in a frame that
runs nothing and loads nothing but pictures.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import orjson
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import variants, versions, written
from messaging.content import drafts, previews, rendering, samples
from messaging.content.previews import DraftPreview
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

CONTACTS = 8
RENDERING_POLICY = (
    "default-src 'none'; img-src https:; style-src 'unsafe-inline'; frame-ancestors 'self'; "
    "base-uri https://rendering.invalid; form-action 'none'; sandbox"
)
"""The policy of a rendering: pictures over TLS, and nothing else, neither scripts nor forms."""
BASE = '<base href="https://rendering.invalid/" target="_blank">'
"""Leads relative addresses, which no mail resolves either, to a host that does not exist, and links
to a window that the sandbox does not open. Only the first of a document's bases counts."""
DARK = '<meta name="color-scheme" content="dark">'
_HEAD = re.compile(r"\A(?:\s++|<!--.*?-->)*+<!doctype[^>]*+>", re.IGNORECASE | re.DOTALL)
UNPARSED = gettext_lazy("No preview yet: correct the problems first.")
_STRANGER = gettext_lazy("You may not see contacts, so you see the sample person.")


def _json(data: object, status: int = 200) -> HttpResponse:
    return HttpResponse(
        orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS, default=str),
        content_type="application/json",
        status=status,
        headers={"Cache-Control": "no-store"},
    )


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def preview(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return how the texts in the form look, and what is wrong with them, as JSON."""
    try:
        draft_preview, version, contact = _rendered(request, viewer, name)
    except errors.InvalidPayload as error:
        return _json({"errors": _details(error)}, 400)
    except errors.RateLimited as error:
        return _json({"errors": [{"field": "", "message": error.message}]}, 429)
    except ValueError as error:
        return _json({"errors": [{"field": "samples", "message": str(error)}]}, 400)
    rendered = draft_preview.rendered
    answer: dict[str, object] = {
        "problems": [asdict(each) for each in draft_preview.problems],
        "failure": draft_preview.failure,
        "contact": viewer.shown(contact.email) or contact.name,
    }
    if rendered:
        html = rendered.html
        answer |= rendered._asdict() | {
            "html": bool(html),
            "forced": rendering.non_gsm_characters(rendered.text or "") if rendered.sms else [],
            "warnings": [each._asdict() for each in rendered.warnings],
            "sms": asdict(rendered.sms) if rendered.sms else None,
            "fields": _fields(request, version, draft_preview),
            "undeclared": versions.undeclared(version, draft_preview.names),
        }
    return _json(answer)


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def frame(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return the rendered HTML of the texts in the form as a document for a sandboxed frame."""
    try:
        draft_preview = _rendered(request, viewer, name)[0]
    except (errors.InvalidPayload, errors.RateLimited, ValueError) as error:
        html, problem = "", str(error)
    else:
        html = (draft_preview.rendered and draft_preview.rendered.html) or ""
        problem = draft_preview.failure or (
            _("There is no HTML.") if draft_preview.rendered else str(UNPARSED)
        )
    body = html or str(format_html("<p>{}</p>", problem))
    return framed(body, dark=request.POST.get("form") == "dark")


def framed(html: str, *, dark: bool = False) -> HttpResponse:
    """Return rendered HTML as a document for a sandboxed frame."""
    return HttpResponse(
        _document(html, dark=dark),
        headers={"Content-Security-Policy": RENDERING_POLICY, "Cache-Control": "no-store"},
    )


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def draft(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Save the texts in the form; return the draft's number and revision as JSON.

    409 names who has changed it meanwhile; nothing is overwritten then.
    """
    viewer.require(Permission.CHANGE_TEMPLATES)
    try:
        row = save(request, viewer, template_of(request, viewer, name))
    except errors.InvalidPayload as error:
        return _json({"errors": _details(error)}, 400)
    except drafts.DraftChanged as error:
        changed_row = error.row
        change = (
            {"by": changed_row.edited_by or _("Somebody else"), "version": changed_row.version}
            if changed_row
            else {}
        )
        return _json({"changed": change}, 409)
    return _json({"version": row.version, "revision": row.revision, "by": row.edited_by})


@access.page
@require_GET
def contacts(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return contacts by what was typed, as JSON, with addresses as the person may see them."""
    term = request.GET.get("q", "")[:320]
    try:
        people_found = people.find(viewer.organization_id, term, limit=CONTACTS)
    except errors.Unavailable as error:
        return _json({"contacts": [], "problem": error.message})
    addresses = [each.email or each.mobile for each in people_found]
    lines = [
        {
            "id": each.id,
            "name": each.name,
            "address": viewer.shown(address),
            "typed": address if _identifies(viewer, address, addresses) else each.id,
        }
        for each, address in zip(people_found, addresses, strict=True)
    ]
    return _json({"contacts": lines})


def _identifies(viewer: Viewer, address: str | None, addresses: Sequence[str | None]) -> bool:
    """Return whether an address, which the viewer may see, is only one of these contacts'."""
    return bool(address) and viewer.sees_addresses and addresses.count(address) == 1


# --- the form -----------------------------------------------------------------------------------
def template_of(request: HttpRequest, viewer: Viewer, name: str) -> Template:
    """Return the template that a request is about. Raise Http404."""
    form = request.POST if request.method == "POST" else request.GET
    variant = variants.choose(
        variants.find(viewer, [name] if "\0" not in name else []).get(name, []),
        form.get("language", ""),
        form.get("channel", ""),
    )
    if variant is None:
        raise Http404
    return Template.objects.get(pk=variant.id)


def shown_version(template: Template, number: int = 0) -> TemplateVersion | None:
    """Return a version by number; without one the newest draft, else the active one."""
    rows = list(
        template.versions.filter(version=number)
        if number
        else template.versions.order_by("-version")[:1]
    )
    if not number and rows and rows[0].state != TemplateVersion.State.DRAFT:
        rows = list(template.versions.filter(state=TemplateVersion.State.ACTIVE)) or rows
    for row in rows:
        row.template = template
    return rows[0] if rows else None


def save(request: HttpRequest, viewer: Viewer, template: Template) -> TemplateVersion:
    """Save the texts in the form as a draft. Raise InvalidPayload, DraftChanged."""
    seen = written.seen(request.POST)
    seen_version = shown_version(template, seen.version)
    texts = written.texts(request.POST, template, drafts.texts_of(seen_version))
    return store(viewer, template, texts, seen)


def store(
    viewer: Viewer, template: Template, texts: Mapping[str, object], seen: drafts.Seen
) -> TemplateVersion:
    """Save texts as a draft, and record a new one. Raise DraftChanged."""
    row = drafts.save(template, texts, viewer.actor, seen)
    if row.revision == 1 and row.version != seen.version:
        access.note(viewer, Action.ADDED, row, text="draft")
    return row


def _rendered(
    request: HttpRequest, viewer: Viewer, name: str
) -> tuple[DraftPreview, TemplateVersion, ContactRecord]:
    """Render the form's texts. Raise InvalidPayload, ValueError, Http404."""
    template = template_of(request, viewer, name)
    seen_version = shown_version(template, written.seen(request.POST).version)
    version = written.version(request.POST, template, seen_version)
    values = written.sample_values(request.POST)
    schema = samples.with_missing(version.variables, _roots(values))
    variables = samples.filled(schema, values)
    contact = _contact(viewer, request.POST.get("contact", ""))
    return (
        previews.preview_texts(viewer.organization, version, contact, variables),
        version,
        contact,
    )


def _roots(paths: Mapping[str, object]) -> list[str]:
    return [path.split("/")[1] for path in paths if path.startswith("/")]


def _fields(
    request: HttpRequest, version: TemplateVersion, draft_preview: DraftPreview
) -> list[dict[str, object]]:
    """Return the fields of sample values: what the schema has, and what the texts name besides."""
    assert draft_preview.rendered is not None
    variable_names = [*draft_preview.rendered.missing, *_roots(written.sample_values(request.POST))]
    used = [each for each in dict.fromkeys(variable_names) if each in draft_preview.names]
    return [asdict(each) for each in samples.fields(samples.with_missing(version.variables, used))]


def _contact(viewer: Viewer, contact_id: str) -> ContactRecord:
    """Return the sample contact, with addresses as the person may see them."""
    if not contact_id:
        return samples.PERSON
    if not viewer.may(Permission.SEE_MESSAGES):
        raise errors.InvalidPayload.at("contact", str(_STRANGER))
    is_valid = len(contact_id) <= 64 and "\0" not in contact_id
    contact = (
        get_contacts(viewer.organization_id, [contact_id]).get(contact_id) if is_valid else None
    )
    if contact is None:
        raise errors.InvalidPayload.at("contact", _("This contact doesn't exist any more."))
    return contact._replace(email=viewer.shown(contact.email), mobile=viewer.shown(contact.mobile))


def _document(html: str, *, dark: bool) -> str:
    """Return a document whose first elements are ours, after its type if it names one."""
    head = _HEAD.match(html)
    cut = head.end() if head else 0
    return html[:cut] + BASE + (DARK if dark else "") + html[cut:]


def _details(error: errors.InvalidPayload) -> list[dict[str, str]]:
    details = [{"field": each.field, "message": each.message} for each in error.details]
    return details or [{"field": "", "message": error.message}]
