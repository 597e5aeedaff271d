"""*Send a message*: choose a person and a template, see the message and its route, confirm."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from messaging.accept import dry_run, results, send
from messaging.accept.requests import MESSAGE
from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.actions.bulk_actions import PROGRAM
from messaging.console.messages import explanations
from messaging.console.routing import route_page
from messaging.console.routing.route_page import PersonRoute
from messaging.console.sending.send_form import NewPerson, SendForm
from messaging.console.studio import live, variants
from messaging.content import compose
from messaging.domain.channels import Channel
from rme.core import errors, ids
from rme.core.http.parsing import parse
from rme.core.provider import Content, Email
from rme.crm import people, platforms
from rme.crm.connectors.records import ContactRecord
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action
from rme.tenants.oauth.authentication import Caller
from rme.tenants.organizations import languages

CONFIRMING = ("preview", "send")
"""The buttons that need a complete form. Others only change what the form offers."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A message that isn't sent yet: what the person would get, and how."""

    content: Content
    address: str
    route: PersonRoute
    scheduled_for: datetime | None
    empty: list[str]
    """Variables without a value."""
    pins: list[tuple[str, str]]
    """Hidden fields that name what was previewed: the contact and the template's version."""
    change: str
    """What has changed since the preview that the person confirmed, if anything."""


@access.page_for(Permission.OPERATE)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form; a POST returns the preview, and the POST of that sends the message."""
    typed = request.POST if request.method == "POST" else request.GET
    do = typed.get("do", "") if request.method == "POST" else ""
    form = SendForm(viewer, typed, is_complete=do in CONFIRMING)
    newcomer = form.new_person if do in CONFIRMING and _may_add(viewer, form) else None
    if newcomer and do == "send":
        _add(viewer, newcomer)
        form, newcomer = SendForm(viewer, typed, is_complete=True), None
    preview = None
    with _added_until_end(viewer, newcomer):
        if newcomer:
            form = SendForm(viewer, typed, is_complete=True)
        if do in CONFIRMING and form.is_valid() and form.channel:
            try:
                change = _change(request, form) if do == "send" else ""
                if do == "send" and not change:
                    return _send(request, viewer, form)
                preview = _preview(viewer, form, form.channel, change)
            except (ValueError, errors.ApiError) as error:
                for line in _lines(error):
                    form.add_error(None, line)
    return access.show(
        request,
        viewer,
        "sending/send",
        _("Send a message"),
        form=form,
        preview=preview,
        person=None if newcomer else form.contact,
        name=form.contact.name if form.contact else "",
        newcomer=newcomer,
        person_address=_address(viewer, form),
        person_url=explanations.person_url(viewer, form.contact.id) if form.contact else "",
        matches=[(each, viewer.shown(each.email or each.mobile)) for each in form.matches],
        variant=form.version and form.version.template,
        category=wording.category(form.category) if preview else "",
        language=languages.name(form.version.template.language) if form.version else "",
        person_language=languages.name((form.contact and form.contact.language) or ""),
        template_url=variants.url_of(form.version.template) if form.version else "",
        typed=[*((each.html_name, each.data or "") for each in form), *preview.pins]
        if preview
        else [],
        key=ids.new_text_id(),
    )


def _may_add(viewer: Viewer, form: SendForm) -> bool:
    """Return whether the person may add a recipient who is no contact yet."""
    is_embedded = platforms.get(viewer.organization_id).kind == platforms.EMBEDDED
    return not form.matches and is_embedded and viewer.may(Permission.CHANGE_PEOPLE)


def _add(viewer: Viewer, person: NewPerson) -> None:
    """Add a contact, unless somebody has just added one with this address."""
    with transaction.atomic():
        people.lock_address(viewer.organization_id, person.email)
        if people.find(viewer.organization_id, person.email, limit=1):
            return
        row = Contact.objects.create(organization_id=viewer.organization_id, **person._asdict())
        access.note(viewer, Action.ADDED, row)


@contextmanager
def _added_until_end(viewer: Viewer, person: NewPerson | None) -> Iterator[None]:
    """Let a recipient who is no contact yet be one in the block: a preview stores nothing."""
    if person is None:
        yield
        return
    with transaction.atomic():
        _add(viewer, person)
        yield
        transaction.set_rollback(True)


@access.page_for(Permission.OPERATE)
@require_POST
def frame(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the HTML of a previewed email as a document for a sandboxed frame."""
    form = SendForm(viewer, request.POST, is_complete=True)
    html = ""
    with _added_until_end(viewer, form.new_person if _may_add(viewer, form) else None):
        form = SendForm(viewer, request.POST, is_complete=True)
        if form.is_valid() and form.channel:
            try:
                content = _preview(viewer, form, form.channel).content
            except (ValueError, errors.ApiError) as error:
                html = str(format_html_join("", "<p>{}</p>", ((line,) for line in _lines(error))))
            else:
                html = (isinstance(content, Email) and content.html) or ""
    return live.framed(html or format_html("<p>{}</p>", _("There is no HTML.")))


def _lines(error: Exception) -> list[str]:
    """Return what a refusal says, in sentences."""
    if isinstance(error, errors.ApiError):
        return [f"{each.field}: {each.message}" for each in error.details] or [error.message]
    return [str(error)]


def _address(viewer: Viewer, form: SendForm) -> str:
    """Return the address of the recipient on the template's channel, as this person may see it."""
    if form.contact is None:
        return ""
    if form.channel is None:
        return viewer.shown(form.contact.email or form.contact.mobile)
    return viewer.shown(compose.address_of(form.contact, form.channel))


def _body(viewer: Viewer, form: SendForm) -> dict[str, object]:
    """Return the request as a caller would write it. Raise ValueError."""
    contact: ContactRecord = form.cleaned_data["recipient"]
    at: datetime | None = form.cleaned_data["at"]
    moment = at and at.replace(tzinfo=viewer.zone).isoformat()
    return {
        "channel": form.channel,
        "category": form.category,
        "to": [{"contactId": contact.id}],
        **form.source,
        **({"schedule": {"mode": "AT", "at": moment}} if moment else {}),
    }


def _as_typed(contact: ContactRecord) -> str:
    """Return a contact as somebody new is typed: a new one has no id in its preview."""
    return f"{contact.name} <{contact.email}>"


def _change(request: HttpRequest, form: SendForm) -> str:
    """Return what differs from the preview that the person confirms, or an empty text."""
    contact: ContactRecord = form.cleaned_data["recipient"]
    if request.POST.get("contact") not in (contact.id, _as_typed(contact)):
        return _("The recipient has changed since the preview. Check the message again.")
    if request.POST.get("version", "") != _version(form):
        return _("The template has changed since the preview. Check the message again.")
    return ""


def _version(form: SendForm) -> str:
    """Return the id of the template's version, or nothing for an own text."""
    return str(form.version.pk) if form.version else ""


def _preview(viewer: Viewer, form: SendForm, channel: Channel, change: str = "") -> Preview:
    """Return what the page shows of a message before it is sent. Raise ApiError, ValueError."""
    contact: ContactRecord = form.cleaned_data["recipient"]
    caller = Caller(viewer.organization, PROGRAM, viewer.user.pk, test=False)
    body: Mapping[str, object] = _body(viewer, form)
    dry = dry_run.dry_run(caller, parse(MESSAGE, body), request_id="")
    if isinstance(dry.result, results.Refusal):
        raise dry.result.error
    (recipient,) = dry.recipients
    if recipient.render_error or recipient.content is None:
        problem = recipient.render_error or _("it has no content for this person.")
        raise ValueError(_("The template can't be used: %(problem)s") % {"problem": problem})
    address = compose.address_of(contact, channel)
    return Preview(
        content=recipient.content,
        address=viewer.shown(address),
        route=route_page.answer(viewer, contact, channel, address, form.category),
        scheduled_for=recipient.result.scheduled_for,
        empty=form.empty_labels,
        pins=[
            ("contact", _as_typed(contact) if form.new_person else contact.id),
            ("version", _version(form)),
        ],
        change=change,
    )


def _send(request: HttpRequest, viewer: Viewer, form: SendForm) -> HttpResponseBase:
    """Send the message, once for each preview, and lead to its page. Raise ApiError, ValueError."""
    key = f"console {viewer.user.pk} {request.POST.get('key', '')}"
    body = _body(viewer, form)
    result = send(viewer.organization_id, body, idempotency_key=key, user_id=viewer.user.pk)
    if not result.replayed:
        access.note(viewer, Action.SENT, form.version, text=f"message {result.message_id}")
    messages.success(
        request, _("Scheduled.") if result.scheduled_for else _("The message is accepted.")
    )
    args = [viewer.organization_id, result.message_id]
    return HttpResponseRedirect(reverse("console:message", args=args))
