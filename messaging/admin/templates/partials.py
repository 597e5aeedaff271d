"""The pages for partials, which templates share: the draft as a form, and all versions."""

import difflib
from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from messaging.admin.live_fields import MODEL_RIGHTS
from messaging.content import drafts, partials, publishing
from messaging.content.drafts import Seen
from messaging.models import Partial, PartialVersion
from rme.core.errors import InvalidPayload
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.choices import TenantForm
from rme.tenants.audit import Action, Actor

VERSIONS = 50
"""The most versions that the page shows, the newest ones."""
DIFF_LINES = 1_000
"""The most lines of a text that are compared: the time grows with their square."""
CHANGED = "Somebody else has changed the draft meanwhile. Copy your text, then open the page again."
STALE = "Somebody else has changed the draft meanwhile. This is how it is now."


class PartialForm(TenantForm):
    """The draft of a partial. It must parse, and so must all texts that use it."""

    seen = forms.CharField(widget=forms.HiddenInput, required=False)
    """The version and the revision that the person has before them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.draft = _draft_of(self.instance) if self.instance.pk else None
        if self.draft:
            self.initial["text"] = self.draft.text
            self.initial["seen"] = _seen_text(self.draft)

    def clean(self) -> dict[str, Any]:
        """Check the partial and the active texts that use it."""
        values = super().clean()
        organization, name = self.own_organization(), values.get("name") or self.instance.name
        if organization and name and "text" in values:
            for problem in partials.problems(organization.pk, name, values["text"]):
                self.add_error("text", problem)
        if self.draft and values.get("seen") != _seen_text(self.draft):
            self.add_error("text", CHANGED)
        return values


def _draft_of(partial: Partial) -> PartialVersion | None:
    return partials.newest_drafts([partial]).get(partial.pk)


def _seen_text(version: PartialVersion) -> str:
    return f"{version.version}.{version.revision}"


def _seen(text: str) -> Seen:
    """Return what a form says that a person has seen; nothing of a text that it doesn't write."""
    version, _, revision = text.partition(".")
    is_written = all(each.isdecimal() and len(each) < 9 for each in (version, revision))
    return Seen(int(version), int(revision)) if is_written else Seen()


@admin.register(Partial)
class PartialAdmin(TenantAdmin):
    """Pieces that templates share. You can't delete one that an active text uses.

    The form writes a draft, which takes effect when it is published: on the page of the versions.
    """

    read_permission: Permission = Permission.SEE_TEMPLATES
    write_permission: Permission = MODEL_RIGHTS["messaging.Partial"]
    form = PartialForm
    fields = ("organization", "name", "text", "seen", "updated_at")
    readonly_fields = ("updated_at",)
    fixed_fields = ("organization", "name")
    list_display = ("name", "state", "updated_at", "organization")
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name",)
    actions_detail: ClassVar[list[str]] = ["versions"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Partial]:
        newest = PartialVersion.objects.filter(partial=OuterRef("pk")).order_by("-version")[:1]
        return (
            super()
            .get_queryset(request)
            .annotate(
                newest_state=Subquery(newest.values("state")),
                newest_review=Subquery(newest.values("review_by")),
                newest_approval=Subquery(newest.values("approved_by")),
            )
        )

    @admin.display(description="state")
    def state(self, row: Any) -> str:
        states = ["Active" if row.is_published else "Not published"]
        if row.newest_state == PartialVersion.State.DRAFT:
            draft = "Draft waits for review" if row.newest_review else "Draft"
            states.append("Draft approved" if row.newest_approval else draft)
        return " · ".join(states)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        is_written = self.has_change_permission(request, obj) if obj else True
        return [name for name in self.fields if is_written or name != "seen"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_publish = self.may(request, Permission.PUBLISH_TEMPLATES, obj)
        return super().has_delete_permission(request, obj) and may_publish

    def save_model(self, request: HttpRequest, obj: Partial, form: Any, change: bool) -> None:
        """Save the text as a draft. The active text stays."""
        text, by = form.cleaned_data["text"], audit.actor_of(request)
        if not change:
            obj.text, obj.is_published = "", False
            super().save_model(request, obj, form, change)
        try:
            partials.save(obj, text, by, _seen(form.cleaned_data.get("seen", "")))
        except drafts.DraftChanged as error:
            raise PermissionDenied(CHANGED) from error  # between the form's check and now

    def response_add(self, request: HttpRequest, obj: Partial, *args: object) -> HttpResponse:
        return self._to_versions(request, obj) or super().response_add(request, obj, *args)

    def response_change(self, request: HttpRequest, obj: Partial) -> HttpResponse:
        return self._to_versions(request, obj) or super().response_change(request, obj)

    def _to_versions(self, request: HttpRequest, row: Partial) -> HttpResponse | None:
        """Lead to the page where the draft is published, if *Save* was pressed."""
        if "_continue" in request.POST or "_addanother" in request.POST:
            return None
        messages.success(request, f"The draft of {row} is saved. Templates use it when published.")
        return HttpResponseRedirect(_versions_url(row))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Report the active texts that use one of them as protected, which prevents deletion."""
        deleted, counts, permissions, protected = super().get_deleted_objects(objs, request)
        needed = [
            f"{problem} (needs {row.name})"
            for row in objs
            for problem in partials.problems(row.organization_id, row.name, None)
        ]
        return deleted, counts, permissions, [*protected, *needed]

    # --- versions -------------------------------------------------------------------------------
    @action(description="Versions", permissions=["view"])
    def versions(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show all versions; a POST publishes one, or does something else with it."""
        row = self.get_object(request, object_id)
        if request.method == "POST":
            self._act(request, row)
            return HttpResponseRedirect(_versions_url(row))
        versions = list(row.versions.order_by("-version")[:VERSIONS])
        by = audit.actor_of(request)
        may_write = self.has_change_permission(request, row)
        may_publish = self._may_publish(request, row)
        version_lines = [
            {
                "row": each,
                "seen": _seen_text(each),
                "lines": _difference(row.text, each.text),
                "buttons": _buttons(each, by, may_write=may_write, may_publish=may_publish),
            }
            for each in versions
        ]
        return self.show(
            request, "partial_versions", row, title=f"Versions of {row}", versions=version_lines
        )

    def _may_publish(self, request: HttpRequest, row: Partial) -> bool:
        return self.may(request, Permission.PUBLISH_TEMPLATES, row) and self._is_written(row)

    def _act(self, request: HttpRequest, row: Partial) -> None:
        """Do what a button of the versions' page says."""
        name = request.POST.get("do", "")
        if name not in _ACTS:
            raise Http404
        act, recorded, is_publishing = _ACTS[name]
        may_write = self.has_change_permission(request, row)
        if not (self._may_publish(request, row) if is_publishing else may_write):
            raise PermissionDenied
        seen = _seen(request.POST.get("seen", ""))
        version = row.versions.filter(version=seen.version).first()
        if version is None or version.revision != seen.revision:
            messages.error(request, STALE)
            return
        version.partial = row
        try:
            with transaction.atomic():
                act(version, audit.actor_of(request))
                self.note(request, row, f"version {version.version}", recorded)
        except drafts.DraftChanged:
            messages.error(request, STALE)
        except InvalidPayload as error:
            for detail in error.details:
                messages.error(request, detail.message)
        else:
            messages.success(request, _DONE[name].format(version.version))


def _versions_url(row: Partial) -> str:
    return f"{reverse('admin:messaging_partial_changelist')}{row.pk}/versions/"


def _difference(old: str, new: str) -> list[tuple[str, str]]:
    """Return the lines of a unified difference, each with its mark; none of long texts."""
    old_lines, new_lines = old.splitlines(), new.splitlines()
    if max(len(old_lines), len(new_lines)) > DIFF_LINES:
        return []
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm="", n=3))[3:]
    return [(line[:1], line[1:]) for line in lines]


def _buttons(
    version: PartialVersion, by: Actor, *, may_write: bool, may_publish: bool
) -> list[tuple[str, str]]:
    """Return the buttons beside a version: the value and the words of each."""
    is_draft = version.state == PartialVersion.State.DRAFT
    may_free = may_publish and publishing.is_free(version, by)
    may_approve = may_publish and publishing.may_review(version, by) and not version.approved_by
    offered = [
        ("publish", "Publish", may_free and is_draft),
        ("publish", "Publish again", may_free and version.state == PartialVersion.State.ARCHIVED),
        ("approve", "Approve", may_approve and is_draft),
        ("request_review", "Ask for a review", may_write and is_draft and not version.review_by),
        ("discard", "Delete draft", may_write and is_draft),
    ]
    return [(value, words) for value, words, is_offered in offered if is_offered]


def _request_review(version: PartialVersion, by: Actor) -> None:
    publishing.request_review([version], by)


def _approve(version: PartialVersion, by: Actor) -> None:
    publishing.approve([version], by)


def _discard(version: PartialVersion, by: Actor) -> None:
    drafts.discard(version, Seen(version.version, version.revision))


_ACTS: dict[str, tuple[Callable[[PartialVersion, Actor], None], Action, bool]] = {
    "request_review": (_request_review, Action.REVIEW_REQUESTED, False),
    "discard": (_discard, Action.DELETED, False),
    "approve": (_approve, Action.APPROVED, True),
    "publish": (partials.publish, Action.PUBLISHED, True),
}
"""What each button does, what the audit says of it, and whether it needs PUBLISH_TEMPLATES."""
_DONE = {
    "request_review": "Version {} waits for a review. Another person may now approve it.",
    "discard": "Draft {} is deleted.",
    "approve": "Version {} is approved.",
    "publish": "Version {} is active. Templates use it within two seconds.",
}
