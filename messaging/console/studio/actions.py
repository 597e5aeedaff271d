"""What a template's page can do, besides saving while a person types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from messaging.accept import send
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import live, variants, versions, written
from messaging.console.studio.studio_forms import AnotherForm, PublishForm, TemplateCategoryForm
from messaging.content import drafts, previews, publishing, samples
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.crm import people, platforms
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action
from rme.tenants.organizations import languages


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, in a sentence, and where it leads; without an address to the page."""

    text: str
    url: str = ""


Owner = TypeVar("Owner", bound=drafts.Owner)
Acts = Mapping[str, Callable[[HttpRequest, Viewer, Owner], Done]]


def carry_out(
    request: HttpRequest,
    viewer: Viewer,
    owner: Owner,
    acts: Acts[Owner],
    *,
    url: str,
    page: Callable[[Sequence[str]], HttpResponseBase],
) -> HttpResponseBase:
    """Do one action, and lead back to `url`; a reload does not do it twice.

    `page` returns the page with what prevents the action.
    """
    do = acts.get(request.POST.get("do", ""))
    if do is None:
        messages.error(request, _("Nothing was done. Choose one of the buttons."))
        return HttpResponseRedirect(url)
    try:
        result = do(request, viewer, owner)
    except errors.ApiError as error:
        return page([f"{each.field}: {each.message}" for each in error.details] or [error.message])
    except drafts.DraftChanged as error:
        by = (error.row and error.row.edited_by) or _("Somebody else")
        changed = _("{person} changed this in the meantime. Nothing was overwritten.")
        return page([changed.format(person=by)])
    messages.success(request, result.text)
    return HttpResponseRedirect(result.url or url)


# --- writing ------------------------------------------------------------------------------------
def save(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Save the form as a draft, where there is no script to do it."""
    row = live.save(request, viewer, template)
    return Done(_("Draft {number} is saved.").format(number=row.version))


def discard(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Delete the draft."""
    row = _shown(request, template)
    drafts.discard(row, written.seen(request.POST))
    access.note(viewer, Action.DELETED, row, text="draft")
    return Done(_("Draft {number} is deleted.").format(number=row.version))


def another(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Add a language or a channel; texts are copied where the channel is the same."""
    form = AnotherForm(viewer, template, request.POST)
    if not form.is_valid():
        raise _invalid(form)
    language, channel = form.cleaned_data["to_language"], form.cleaned_data["to_channel"]
    source = live.shown_version(template)
    texts = drafts.texts_of(source) if channel == template.channel else {}
    new_template = Template(
        organization_id=viewer.organization_id,
        name=template.name,
        language=language,
        channel=channel,
        category=template.category,
    )
    drafts.add_template(new_template, viewer.actor, texts)
    access.note(viewer, Action.ADDED, new_template, text=f"copied from {template}" if texts else "")
    words = _("{draft} is a draft with the texts of {language}.") if texts else _("{draft} is new.")
    text = words.format(
        draft=variants.name_of(new_template), language=languages.name(template.language)
    )
    return Done(text, variants.url_of(new_template))


def category(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Move the variant to another category; if it sends, only a publisher may do that."""
    form = TemplateCategoryForm(viewer, template, request.POST)
    if not form.is_valid():
        raise _invalid(form)
    new = form.cleaned_data["to_category"]
    may_publish = viewer.may(Permission.PUBLISH_TEMPLATES)
    publishing.change_category(template, new, may_publish=may_publish)
    changes = {"category": [template.category, new]}
    access.note(viewer, Action.CHANGED, template, changes=changes)
    return Done(_("{template} has a new category.").format(template=variants.name_of(template)))


def delete(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Delete a variant that was never active."""
    values = audit.values_of(template, ())
    drafts.delete_template(template)
    access.note(viewer, Action.DELETED, template, changes=values)
    url = reverse("console:templates", args=[viewer.organization_id])
    remaining = variants.find(viewer, [template.name]).get(template.name)
    return Done(
        _("{template} is deleted.").format(template=variants.name_of(template)),
        remaining[0].url if remaining else url,
    )


def test(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Send the version as it is to the person who is logged in, by the way of every message."""
    version = _shown(request, template)
    contact = _own_contact(viewer)
    values = written.sample_values(request.POST)
    variables = samples.filled(version.variables, values) or samples.variables(version.variables)
    preview = previews.preview_texts(viewer.organization, version, contact, variables)
    if preview.rendered is None:
        problem = preview.problems[0].message if preview.problems else preview.failure
        raise errors.InvalidPayload.at("template", problem)
    body = _request(template, contact, preview.rendered)
    result = send(viewer.organization_id, body, user_id=viewer.user.pk)
    access.note(viewer, Action.TESTED, version, text=f"message {result.message_id}")
    to = viewer.shown(contact.email if template.channel == "EMAIL" else contact.mobile)
    if result.status not in ("ACCEPTED", "SENT", "DELIVERED", "SENDING"):
        return Done(_("The test wasn't sent. Open it under Messages to see why."))
    words = _("Version {number} is on its way to {recipient}.")
    return Done(words.format(number=version.version, recipient=to or contact.name))


def _request(
    template: Template, contact: ContactRecord, rendered: previews.Rendered
) -> dict[str, object]:
    """Return the request that sends a rendering as literal content, as a caller would write it."""
    names = {"EMAIL": ("subject", "text", "html"), "SMS": ("text",)}
    fields = rendered._asdict()
    content_names = names.get(template.channel, ("title", "body", "data", "badge"))
    content = {name: fields[name] for name in content_names if fields[name] not in (None, "", {})}
    push_options = {name: fields[name] for name in ("image", "link") if fields[name]}
    return {
        "channel": template.channel,
        "category": TRANSACTIONAL,
        "to": [{"contactId": contact.id}],
        "content": content,
        **({"push": push_options} if push_options else {}),
    }


def _own_contact(viewer: Viewer) -> ContactRecord:
    """Return the contact with the email address of the person who is logged in.

    Add it if contacts are stored here and the person may add some.
    """
    email = viewer.user.email
    if not email:
        raise errors.InvalidPayload.at(
            "test", _("Your account has no email address. Add one to your profile.")
        )
    if contacts := people.find(viewer.organization_id, email, limit=1):
        return contacts[0]
    is_embedded = platforms.get(viewer.organization_id).kind == platforms.EMBEDDED
    if not is_embedded or not viewer.may(Permission.CHANGE_PEOPLE):
        message = _("No contact has your address {email}. Add yourself under Contacts.")
        raise errors.InvalidPayload.at("test", message.format(email=email))
    user = viewer.user
    name = user.last_name or user.get_username()
    fields = {"first_name": user.first_name, "last_name": name, "email": email}
    with transaction.atomic():
        people.lock_address(viewer.organization_id, email)
        if contacts := people.find(viewer.organization_id, email, limit=1):
            return contacts[0]
        row = Contact.objects.create(organization_id=viewer.organization_id, **fields)
        access.note(viewer, Action.ADDED, row)
    return get_contacts(viewer.organization_id, [str(row.pk)])[str(row.pk)]


def request_review(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Ask others to look at all drafts of the template."""
    rows = _drafts(viewer, template)
    publishing.request_review(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.REVIEW_REQUESTED, row)
    words = ngettext(
        "{count} draft is waiting for review. Someone else can approve it.",
        "{count} drafts are waiting for review. Someone else can approve them.",
        len(rows),
    )
    return Done(words.format(count=len(rows)))


# --- publishing ---------------------------------------------------------------------------------
def publish(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Make a version active, now or at a time."""
    row = _shown(request, template)
    _require_declared([row])
    form = PublishForm(request.POST)
    if not form.is_valid():
        raise _invalid(form)
    if at := form.moment(viewer):
        publishing.publish_at(row, viewer.actor, at)
        access.note(viewer, Action.PUBLISH_ORDERED, row, changes=access.values(at=at.isoformat()))
        words = _("Version {number} will be active at {time}.")
        return Done(words.format(number=row.version, time=f"{at:%d %b %Y, %H:%M %Z}"))
    publishing.publish(row, viewer.actor)
    access.note(viewer, Action.PUBLISHED, row)
    return Done(_("Version {number} is active.").format(number=row.version))


def publish_all(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Make the drafts of all languages and channels active; all of them or none."""
    rows = _drafts(viewer, template)
    _require_seen(request, rows)
    _require_declared(rows)
    publishing.publish_all(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.PUBLISHED, row)
    words = ngettext("{count} draft is active now.", "{count} drafts are active now.", len(rows))
    return Done(words.format(count=len(rows)))


def approve(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Approve all drafts that wait for a review."""
    rows = [each for each in _drafts(viewer, template) if each.review_by]
    _require_seen(request, rows)
    publishing.approve(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.APPROVED, row)
    words = ngettext("{count} draft is approved.", "{count} drafts are approved.", len(rows))
    return Done(words.format(count=len(rows)))


def approve_and_publish(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Approve all drafts that wait for a review, and make them active; all of them or none."""
    rows = [each for each in _drafts(viewer, template) if each.review_by]
    _require_seen(request, rows)
    _require_declared(rows)
    publishing.approve(rows, viewer.actor)
    publishing.publish_all(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.APPROVED, row)
        access.note(viewer, Action.PUBLISHED, row)
    words = ngettext(
        "{count} draft is approved, and active now.",
        "{count} drafts are approved, and active now.",
        len(rows),
    )
    return Done(words.format(count=len(rows)))


def end_order(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Forget the time at which a draft was to be made active."""
    row = _shown(request, template)
    publishing.end_order(row)
    access.note(viewer, Action.STOPPED, row, text="publishing at a time")
    return Done(_("Draft {number} stays a draft.").format(number=row.version))


def archive(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Archive the variant: nothing more is sent by it."""
    publishing.archive(template)
    access.note(viewer, Action.ARCHIVED, template)
    words = _("{template} is archived. To bring it back, make a version active.")
    return Done(words.format(template=variants.name_of(template)))


WRITING: Acts[Template] = {
    "save": save,
    "discard": discard,
    "another": another,
    "category": category,
    "delete": delete,
    "test": test,
    "request_review": request_review,
}
PUBLISHING: Acts[Template] = {
    "publish": publish,
    "publish_all": publish_all,
    "approve": approve,
    "approve_and_publish": approve_and_publish,
    "end_order": end_order,
    "archive": archive,
}


def _require_declared(rows: Sequence[TemplateVersion]) -> None:
    """Raise InvalidPayload if a draft names a variable that it doesn't declare."""
    for row in rows:
        if row.state == TemplateVersion.State.DRAFT:
            versions.require_declared(row)


def _shown(request: HttpRequest, template: Template) -> TemplateVersion:
    """Return the version that the person has before them. Raise DraftChanged, InvalidPayload."""
    seen = written.seen(request.POST)
    row = live.shown_version(template, seen.version) if seen.version else None
    if row is None:
        raise errors.InvalidPayload.at("version", _("This version doesn't exist any more."))
    if row.state == TemplateVersion.State.DRAFT and row.revision != seen.revision:
        raise drafts.DraftChanged(row)
    return row


def _drafts(viewer: Viewer, template: Template) -> list[TemplateVersion]:
    """Return the newest drafts of all languages and channels. Raise InvalidPayload without one."""
    numbers = {
        each.id: each.draft
        for each in variants.find(viewer, [template.name])[template.name]
        if each.draft
    }
    rows = TemplateVersion.objects.filter(
        template__in=numbers, state=TemplateVersion.State.DRAFT
    ).select_related("template")
    versions = [row for row in rows.order_by("pk") if row.version == numbers[row.template_id]]
    if not versions:
        raise errors.InvalidPayload.at("version", _("There is no draft."))
    return versions


def _require_seen(request: HttpRequest, rows: Sequence[TemplateVersion]) -> None:
    """Raise DraftChanged unless the person's page had the drafts as they are now.

    The page's script changes the revision of the version that it shows as it saves it.
    """
    page = set(request.POST.get("drafts", "").split(","))
    seen = written.seen(request.POST)
    for row in rows:
        is_shown = (row.version, row.revision) == (seen.version, seen.revision)
        if f"{row.template_id}.{row.version}.{row.revision}" not in page and not (
            is_shown and _is_variant(request, row.template)
        ):
            raise drafts.DraftChanged(row)


def _is_variant(request: HttpRequest, template: Template) -> bool:
    """Return whether a form is of a template's language and channel."""
    names = (request.POST.get("language"), request.POST.get("channel"))
    return names == (template.language, template.channel)


def _invalid(form: forms.Form) -> errors.InvalidPayload:
    details = [
        errors.Detail(str(form.fields[name].label or name), str(message))
        for name, messages_of_field in form.errors.items()
        for message in messages_of_field
    ]
    return errors.InvalidPayload(details=details)
