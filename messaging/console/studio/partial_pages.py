"""Partials: their list, and a page for each to write, review and publish it."""

from collections.abc import Callable, Sequence

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import actions, comparison, written
from messaging.console.studio.actions import Done
from messaging.content import drafts, partials, publishing
from messaging.models import Partial, PartialVersion
from rme.core import errors
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action, Actor

SHOWN = 50
"""The most partials on a page of the list, and the most versions on a partial's page."""
CHANGED = gettext_lazy(
    "{person} changed the draft in the meantime. Nothing was overwritten. Save yours as another "
    "draft, or open the page again to see theirs."
)
State = PartialVersion.State


class NewPartialForm(forms.Form):
    """A partial that does not exist yet."""

    name = forms.CharField(
        max_length=64,
        label=gettext_lazy("Name"),
        validators=Partial._meta.get_field("name").validators[:1],
        error_messages={
            "invalid": gettext_lazy("Use letters, digits, - and _. Begin with a letter or digit.")
        },
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "footer"}),
    )


class TextForm(forms.Form):
    """The text of a partial."""

    text = forms.CharField(
        strip=False,
        label=gettext_lazy("Text"),
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text=gettext_lazy("Liquid. A partial sees only the values that render passes to it."),
        error_messages={"required": gettext_lazy("Enter the text of the partial.")},
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")


# --- the list -----------------------------------------------------------------------------------
@access.page_for(Permission.SEE_TEMPLATES)
def show_list(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the list; a POST adds a partial and leads to its page."""
    form = NewPartialForm(auto_id="new_%s", label_suffix="")
    if request.method == "POST":
        viewer.require(Permission.CHANGE_TEMPLATES)
        form = NewPartialForm(request.POST, auto_id="new_%s", label_suffix="")
        if form.is_valid() and (partial := _add(viewer, form)):
            return HttpResponseRedirect(url_of(partial))
    term = request.GET.get("q", "").replace("\0", "").strip()[:64]
    after = request.GET.get("after", "").replace("\0", "")
    rows = Partial.objects.filter(
        organization_id=viewer.organization_id, name__icontains=term, name__gt=after
    )
    found = list(rows.defer("text").order_by("name")[: SHOWN + 1])
    shown = found[:SHOWN]
    newest = partials.newest_drafts(shown)
    return access.show(
        request,
        viewer,
        "studio/partials",
        _("Partials"),
        partials=[(row, url_of(row), _states(row, newest.get(row.pk))) for row in shown],
        following=shown[-1].name if len(found) > SHOWN else "",
        term=term,
        form=form,
        may_change=viewer.may(Permission.CHANGE_TEMPLATES),
    )


def url_of(partial: Partial) -> str:
    """Return the address of a partial's page."""
    return reverse("console:partial", args=[partial.organization_id, partial.name])


def _add(viewer: Viewer, form: NewPartialForm) -> Partial | None:
    """Add a partial without a text; None if it exists, with the form's error."""
    name = form.cleaned_data["name"]
    try:
        with transaction.atomic():
            (partial,) = partials.add_all(viewer.organization_id, [name])
    except IntegrityError:
        form.add_error("name", _("A partial named {name} exists already.").format(name=name))
        return None
    access.note(viewer, Action.ADDED, partial)
    return partial


def _states(partial: Partial, draft: PartialVersion | None) -> list[tuple[str, str]]:
    """Return a partial's state in words, each with the name of a colour."""
    states = [(_("Active"), "good") if partial.is_published else (_("Not published"), "warn")]
    if draft:
        states.append((_("Draft {number}").format(number=draft.version), "info"))
        if draft.approved_by:
            states.append((_("Approved"), "good"))
        elif draft.review_by:
            states.append((_("Waiting for review"), "warn"))
    return states


# --- a partial's page ---------------------------------------------------------------------------
@access.page_for(Permission.SEE_TEMPLATES)
def show(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return a partial's page; a POST writes: it saves, deletes a draft, or asks for a review."""
    partial = _partial(viewer, name)
    if request.method != "POST":
        return _page(request, viewer, partial)
    viewer.require(Permission.CHANGE_TEMPLATES)
    if request.POST.get("do") == "save":
        return _save(request, viewer, partial)
    return _act(request, viewer, partial, _WRITING)


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def publish(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Do what changes the texts that are sent: publish, roll back, approve, delete."""
    viewer.require(Permission.PUBLISH_TEMPLATES)
    return _act(request, viewer, _partial(viewer, name), _PUBLISHING)


def _partial(viewer: Viewer, name: str) -> Partial:
    rows = Partial.objects.filter(organization_id=viewer.organization_id)
    return get_object_or_404(rows, name=name.replace("\0", ""))


def _save(request: HttpRequest, viewer: Viewer, partial: Partial) -> HttpResponseBase:
    """Save the text as a draft, or show the page again with the text and what is wrong with it."""
    form = TextForm(request.POST, label_suffix="")
    text = form.cleaned_data["text"] if form.is_valid() else ""
    if text:
        for problem in partials.problems(partial.organization_id, partial.name, text):
            form.add_error("text", problem)
    if not form.is_valid():
        return _page(request, viewer, partial, form=form)
    seen = written.seen(request.POST)
    try:
        row = partials.save(partial, text, viewer.actor, seen)
    except drafts.DraftChanged as error:
        by = (error.row and error.row.edited_by) or _("Somebody else")
        form.add_error("text", CHANGED.format(person=by))
        return _page(request, viewer, partial, form=form, is_changed=True)
    if row.version != seen.version:
        access.note(viewer, Action.ADDED, partial, text=f"draft {row.version}")
    words = _("Draft {number} is saved. Templates don't use it yet.")
    messages.success(request, str(words).format(number=row.version))
    return HttpResponseRedirect(url_of(partial))


def _act(
    request: HttpRequest, viewer: Viewer, partial: Partial, acts: actions.Acts[Partial]
) -> HttpResponseBase:
    def page(problems: Sequence[str]) -> HttpResponseBase:
        return _page(request, viewer, partial, problems=problems)

    return actions.carry_out(request, viewer, partial, acts, url=url_of(partial), page=page)


def _page(
    request: HttpRequest,
    viewer: Viewer,
    partial: Partial,
    *,
    form: TextForm | None = None,
    is_changed: bool = False,
    problems: Sequence[str] = (),
) -> HttpResponseBase:
    history = list(partial.versions.defer("text").order_by("-version")[:SHOWN])
    version = _shown(partial, history, request.GET.get("version", ""))
    text = version.text if version else partial.text
    may_change = viewer.may(Permission.CHANGE_TEMPLATES)
    seen = {name: getattr(version, name) if version else 0 for name in ("version", "revision")}
    if form:  # as it was sent, until the person chooses to save another draft
        seen = {name: request.POST.get(name, "0") for name in seen}
    form = form or TextForm(initial={"text": text}, label_suffix="")
    if not may_change:
        form.fields["text"].widget.attrs["readonly"] = True
    newest = history[0] if history and history[0].state == State.DRAFT else None
    is_draft = version is not None and version.state == State.DRAFT
    return access.show(
        request,
        viewer,
        "studio/partial",
        partial.name,
        partial=partial,
        states=_states(partial, newest),
        version=version,
        is_draft=is_draft,
        history=history,
        form=form,
        seen=seen,
        is_changed=is_changed,
        problems=problems,
        lines=list(comparison.difference(partial.text, text)) if partial.is_published else [],
        may_change=may_change,
        may_publish=viewer.may(Permission.PUBLISH_TEMPLATES),
        is_free=version is not None and publishing.is_free(version, viewer.actor),
        may_review=version is not None and publishing.may_review(version, viewer.actor),
        review_is_required=publishing.review_is_required(viewer.organization_id),
    )


def _shown(
    partial: Partial, history: Sequence[PartialVersion], number: str
) -> PartialVersion | None:
    """Return a version by number; without one the newest draft, else the active one."""
    if number:
        return get_object_or_404(partial.versions, version=written.version_number(number))
    active = next((row for row in history if row.state == State.ACTIVE), None)
    row = history[0] if history and history[0].state == State.DRAFT else active
    return partial.versions.get(pk=row.pk) if row else None


# --- its buttons --------------------------------------------------------------------------------
def _version(request: HttpRequest, partial: Partial) -> PartialVersion:
    """Return the version that the person has before them. Raise DraftChanged, InvalidPayload."""
    seen = written.seen(request.POST)
    row = partial.versions.filter(version=seen.version).first()
    if row is None:
        raise errors.InvalidPayload.at("version", _("This version doesn't exist any more."))
    if row.state == State.DRAFT and row.revision != seen.revision:
        raise drafts.DraftChanged(row)
    return row


def _on_version(
    act: Callable[[PartialVersion, Actor], None], action: Action, words: Promise
) -> Callable[[HttpRequest, Viewer, Partial], Done]:
    """Return what a button does with the version that the person has before them."""

    def do(request: HttpRequest, viewer: Viewer, partial: Partial) -> Done:
        row = _version(request, partial)
        act(row, viewer.actor)
        access.note(viewer, action, partial, text=f"version {row.version}")
        return Done(str(words).format(number=row.version))

    return do


def _delete(request: HttpRequest, viewer: Viewer, partial: Partial) -> Done:
    """Delete the partial with its versions, unless an active text needs it."""
    viewer.require(Permission.CHANGE_TEMPLATES)
    values = audit.values_of(partial, ())
    url = reverse("console:partials", args=[viewer.organization_id])
    partials.delete(partial)
    access.note(viewer, Action.DELETED, partial, changes=values)
    return Done(_("The partial {name} is deleted.").format(name=partial.name), url)


_WRITING: actions.Acts[Partial] = {
    "request_review": _on_version(
        lambda row, by: publishing.request_review([row], by),
        Action.REVIEW_REQUESTED,
        gettext_lazy("Draft {number} is waiting for review. Someone else can approve it."),
    ),
    "discard": _on_version(
        lambda row, by: drafts.discard(row, drafts.Seen(row.version, row.revision)),
        Action.DELETED,
        gettext_lazy("Draft {number} is deleted."),
    ),
}
_PUBLISHING: actions.Acts[Partial] = {
    "approve": _on_version(
        lambda row, by: publishing.approve([row], by),
        Action.APPROVED,
        gettext_lazy("Draft {number} is approved."),
    ),
    "publish": _on_version(
        partials.publish,
        Action.PUBLISHED,
        gettext_lazy("Version {number} is active. Templates use it within two seconds."),
    ),
    "delete": _delete,
}
