"""What a template's page can do, besides saving while somebody types."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from messaging.accept import Call, Submission, accept, results
from messaging.accept.requests import MESSAGE
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.actions import bulk_actions
from messaging.console.studio import live, pieces, written
from messaging.console.studio.studio_forms import AnotherForm, PublishForm
from messaging.content import drafts, previews, publishing, samples
from messaging.models import Template, TemplateVersion
from messaging.policy.organization_policy import TRANSACTIONAL
from rme.core import errors
from rme.core.http.parsing import parse
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.tenants.audit import Action
from rme.tenants.authentication import Caller


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, in a sentence, and where it leads; without an address to the piece."""

    text: str
    url: str = ""


Act = Callable[[HttpRequest, Viewer, Template], Done]


# --- writing ------------------------------------------------------------------------------------
def save(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Save the form as a draft, where there is no script to do it."""
    row = live.save(request, viewer, template)
    return Done(f"Draft {row.version} is saved.")


def discard(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Delete the draft."""
    row = _shown(request, template)
    drafts.discard(row, written.seen(request.POST))
    access.note(viewer, Action.DELETED, row, text="draft")
    return Done(f"Draft {row.version} is deleted.")


def another(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Add a language or a channel; texts are copied where the channel is the same."""
    form = AnotherForm(template, request.POST)
    if not form.is_valid():
        raise _invalid(form)
    language, channel = form.cleaned_data["to_language"], form.cleaned_data["to_channel"]
    source = live.shown_version(template)
    texts = drafts.texts_of(source) if channel == template.channel else {}
    made = Template(
        organization_id=viewer.organization_id,
        name=template.name,
        language=language,
        channel=channel,
        category=template.category,
    )
    row = drafts.add_template(made, viewer.actor, texts)
    access.note(viewer, Action.ADDED, made, text=f"copied from {template}" if texts else "")
    words = f"{row} is a draft with the texts of {template.language}." if texts else f"{row}: new."
    return Done(words, pieces.url(viewer, template.name, language, channel))


def test(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Send the version as it is to the person who is logged in, by the way of every message."""
    version = _shown(request, template)
    contact = _own_contact(viewer)
    given = written.sample_values(request.POST)
    variables = samples.filled(version.variables, given) or samples.variables(version.variables)
    found = previews.preview_texts(viewer.organization, version, contact, variables)
    if found.rendered is None:
        problem = found.problems[0].message if found.problems else found.failure
        raise errors.InvalidPayload.at("template", problem)
    caller = Caller(viewer.organization, bulk_actions.PROGRAM, viewer.user.pk, test=False)
    message = parse(MESSAGE, _request(template, contact, found.rendered))
    result = accept(Call(caller, Submission(message), f"console {viewer.user.pk}"))
    if isinstance(result, results.Refusal):
        raise result.error
    assert isinstance(result, results.SendResult)  # without a key there is no stored answer
    access.note(viewer, Action.TESTED, version, text=f"message {result.message_id}")
    to = viewer.shown(contact.email if template.channel == "EMAIL" else contact.mobile)
    words = f"Version {version.version} is on its way to {to or contact.name}."
    if result.status not in ("ACCEPTED", "SENT", "DELIVERED", "SENDING"):
        words = f"The test was not sent: {result.status}. Its page says why."
    return Done(words)


def _request(
    template: Template, contact: ContactRecord, rendered: previews.Rendered
) -> dict[str, object]:
    """Return the request that sends a rendering as literal content, as a caller would write it."""
    names = {"EMAIL": ("subject", "text", "html"), "SMS": ("text",)}
    given = rendered._asdict()
    wanted = names.get(template.channel, ("title", "body", "data", "badge"))
    content = {name: given[name] for name in wanted if given[name] not in (None, "", {})}
    more = {name: given[name] for name in ("image", "link") if given[name]}
    return {
        "channel": template.channel,
        "category": TRANSACTIONAL,
        "to": [{"contactId": contact.id}],
        "content": content,
        **({"push": more} if more else {}),
    }


def _own_contact(viewer: Viewer) -> ContactRecord:
    """Return the contact with the email address of the person who is logged in."""
    email = viewer.user.email
    if not email:
        raise errors.InvalidPayload.at("test", "Your account has no email address.")
    found = people.find(viewer.organization_id, email, limit=1)
    if not found:
        why = f"No contact has your address {email}. Add yourself under Contacts."
        raise errors.InvalidPayload.at("test", why)
    return found[0]


def request_review(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Ask others to look at all drafts of the template."""
    rows = _drafts(viewer, template)
    publishing.request_review(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.REVIEW_REQUESTED, row)
    return Done(f"{_count(rows)} for review. Another person may now approve.")


# --- publishing ---------------------------------------------------------------------------------
def publish(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Make a version active, now or at a time."""
    row = _shown(request, template)
    form = PublishForm(request.POST)
    if not form.is_valid():
        raise _invalid(form)
    if at := form.moment(viewer):
        publishing.publish_at(row, viewer.actor, at)
        access.note(viewer, Action.PUBLISH_ORDERED, row, changes=access.values(at=at.isoformat()))
        return Done(f"Version {row.version} will be active at {at:%d %b %Y, %H:%M %Z}.")
    publishing.publish(row, viewer.actor)
    access.note(viewer, Action.PUBLISHED, row)
    return Done(f"Version {row.version} is active.")


def publish_all(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Make the drafts of all languages and channels active; all of them or none."""
    rows = _drafts(viewer, template)
    publishing.publish_all(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.PUBLISHED, row)
    return Done(f"{_count(rows)} active now.")


def approve(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Approve all drafts that wait for a review."""
    rows = [each for each in _drafts(viewer, template) if each.review_by]
    publishing.approve(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.APPROVED, row)
    return Done(f"{_count(rows)} approved.")


def approve_and_publish(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Approve all drafts that wait for a review, and make them active; all of them or none."""
    rows = [each for each in _drafts(viewer, template) if each.review_by]
    publishing.approve(rows, viewer.actor)
    publishing.publish_all(rows, viewer.actor)
    for row in rows:
        access.note(viewer, Action.APPROVED, row)
        access.note(viewer, Action.PUBLISHED, row)
    return Done(f"{_count(rows)} approved, and active now.")


def end_order(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Forget the time at which a draft was to be made active."""
    row = _shown(request, template)
    publishing.end_order(row)
    access.note(viewer, Action.STOPPED, row, text="publishing at a time")
    return Done(f"Draft {row.version} stays a draft.")


def archive(request: HttpRequest, viewer: Viewer, template: Template) -> Done:
    """Archive the piece: nothing more is sent by it."""
    publishing.archive(template)
    access.note(viewer, Action.ARCHIVED, template)
    return Done(f"{template} is archived. To make a version active brings it back.")


WRITING: dict[str, Act] = {
    "save": save,
    "discard": discard,
    "another": another,
    "test": test,
    "request_review": request_review,
}
PUBLISHING: dict[str, Act] = {
    "publish": publish,
    "publish_all": publish_all,
    "approve": approve,
    "approve_and_publish": approve_and_publish,
    "end_order": end_order,
    "archive": archive,
}


def _shown(request: HttpRequest, template: Template) -> TemplateVersion:
    """Return the version that the person has before them. Raise DraftChanged, InvalidPayload."""
    seen = written.seen(request.POST)
    row = live.shown_version(template, seen.version) if seen.version else None
    if row is None:
        raise errors.InvalidPayload.at("version", "There is no such version.")
    if row.state == TemplateVersion.State.DRAFT and row.revision != seen.revision:
        raise drafts.DraftChanged(row)
    return row


def _drafts(viewer: Viewer, template: Template) -> list[TemplateVersion]:
    """Return the newest drafts of all languages and channels. Raise InvalidPayload without one."""
    numbers = {
        each.id: each.draft
        for each in pieces.find(viewer, [template.name])[template.name]
        if each.draft
    }
    rows = TemplateVersion.objects.filter(
        template__in=numbers, state=TemplateVersion.State.DRAFT
    ).select_related("template")
    found = [row for row in rows.order_by("pk") if row.version == numbers[row.template_id]]
    if not found:
        raise errors.InvalidPayload.at("version", "There is no draft.")
    return found


def _count(rows: list[TemplateVersion]) -> str:
    return "1 draft is" if len(rows) == 1 else f"{len(rows)} drafts are"


def _invalid(form: AnotherForm | PublishForm) -> errors.InvalidPayload:
    details = [
        errors.Detail(str(form.fields[name].label or name), str(message))
        for name, found in form.errors.items()
        for message in found
    ]
    return errors.InvalidPayload(details=details)
