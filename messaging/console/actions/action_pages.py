"""Pages of actions: what one will do and to how many, its start with a reason, and its progress."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer, note
from messaging.console.actions import bulk_actions, tasks
from messaging.console.actions.bulk_actions import ActionKind
from messaging.console.filters import message_filter
from messaging.console.filters.message_filter import MessageFilterForm
from messaging.models import BulkAction, Pause
from messaging.reports import delivery_list
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import ids
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

LISTED = 50
QUESTIONS = {
    ActionKind.CANCEL: ("Cancel", "Stops {} scheduled {}. They are not sent."),
    ActionKind.RESEND: ("Send again", "Sends {} {} again, with all checks, as new messages."),
    ActionKind.LIFT: (
        "Lift suppressions",
        "Takes {} {} off the list. Messages may go there again.",
    ),
    ActionKind.SEND_AGAIN: (
        "Send again",
        "Hands {} {} to the provider once more. If it accepted them the first time, their "
        "recipients get them twice. Consent, suppressions and pauses are checked again, and the "
        "time after which they expire starts again.",
    ),
    ActionKind.GIVE_UP: (
        "Give up",
        "Ends {} {} as failed. They are not sent again. They may have arrived nevertheless: a "
        "late receipt still makes them delivered.",
    ),
}
"""The button of each action, and what it will do."""
NOUNS = {
    ActionKind.CANCEL: ("send", "sends"),
    ActionKind.RESEND: ("message", "messages"),
    ActionKind.LIFT: ("suppression", "suppressions"),
    ActionKind.SEND_AGAIN: ("message", "messages"),
    ActionKind.GIVE_UP: ("message", "messages"),
}
DECISION_REASON = (
    "Kept in the audit and in the message's history, which your programs read. Name no recipient."
)
PAUSABLE = frozenset({"channel", "category", "template"})
"""What a pause can name."""


class ActionReasonForm(forms.Form):
    """Why an action is ordered: the audit keeps it."""

    # Not `reason`, which is a filter of the same page.
    why = forms.CharField(
        max_length=500, label="Why?", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


@dataclass(frozen=True, slots=True)
class ActionChoice:
    """The rows of an action, and what was chosen in words."""

    targets: Sequence[UUID]
    scope: str
    is_cut: bool
    """Whether there may be more than one action takes."""
    contact_id: str = ""
    """The person whom the filters name, if it is one alone."""


def _form(request: HttpRequest, kind: BulkAction.Kind) -> ActionReasonForm:
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    if kind in bulk_actions.DECISIONS:
        form.fields["why"].help_text = DECISION_REASON
    return form


@access.page
def choose(request: HttpRequest, viewer: Viewer, kind: str) -> HttpResponseBase:
    """Return the page that says what an action will do; a POST with a reason starts it."""
    viewer.require(Permission.OPERATE)
    chosen_kind = _kind(kind)
    data = request.POST if request.method == "POST" else request.GET
    choice = _choice(viewer, chosen_kind, data)
    form = _form(request, chosen_kind)
    if form.is_valid() and choice.targets:
        reason = form.cleaned_data["why"]
        action = bulk_actions.start(
            viewer,
            chosen_kind,
            choice.targets,
            scope=choice.scope,
            reason=reason,
            contact_id=choice.contact_id,
        )
        tasks.request_work()
        url = reverse("console:action", args=[viewer.organization_id, action.pk])
        return HttpResponseRedirect(url)
    button, effect = QUESTIONS[chosen_kind]
    count = len(choice.targets)
    return access.show(
        request,
        viewer,
        "action_choose",
        f"{button}?",
        form=form,
        button=button,
        choice=choice,
        count=count,
        effect=effect.format(f"{count:,}", NOUNS[chosen_kind][count != 1]),
        hidden=_hidden(data),
    )


def _kind(text: str) -> ActionKind:
    try:
        return ActionKind(text.upper())
    except ValueError:
        raise Http404 from None


def _choice(viewer: Viewer, kind: ActionKind, data: QueryDict) -> ActionChoice:
    """Return the rows that filters, or a message's id, mean for an action."""
    contact_id = ""
    if message_id := ids.parse(data.get("message", "")):
        delivery_filter, scope = DeliveryFilter(message_id=message_id), f"message {message_id}"
        limit = message_filter.RECIPIENTS
    else:
        form = MessageFilterForm(viewer, data)
        choice = message_filter.read(form)
        if choice.matches_nobody or choice.problem:
            return ActionChoice([], form.in_words, is_cut=False)
        delivery_filter, scope, limit = (
            choice.delivery_filter,
            form.in_words,
            bulk_actions.TARGETS_LIMIT,
        )
        if (
            several := len(delivery_filter.contact_ids)
        ) > 1:  # what was typed would outlive an erasure
            typed = {name: form.data.get(name, "") for name in form.fields}
            scope = message_filter.in_words({**typed, "person": f"{several} people"})
        contact_id = choice.contact_id
        # The action covers what was counted, not messages that came later.
        delivery_filter = replace(
            delivery_filter, until=min(filter(None, [delivery_filter.until, _shown_at(data)]))
        )
    if kind is ActionKind.LIFT:
        delivery_filter = replace(delivery_filter, reason="SUPPRESSED")
    if kind in bulk_actions.DECISIONS:
        delivery_filter = replace(delivery_filter, held=True)
    statuses = bulk_actions.STATUSES[kind]
    if delivery_filter.statuses and not set(delivery_filter.statuses) & set(statuses):
        return ActionChoice([], scope, is_cut=False, contact_id=contact_id)
    delivery_filter = delivery_list.within(delivery_filter, statuses)
    rows = delivery_list.find(
        viewer.organization_id,
        delivery_filter,
        limit=limit,
        scan=bulk_actions.SCAN_LIMIT,
        archived=False,  # what is archived is only read
    )
    targets = [row.id for row in rows.rows]
    if kind is ActionKind.LIFT:
        targets = bulk_actions.suppressions_of(viewer.organization_id, targets)
    return ActionChoice(targets, scope, rows.following is not None, contact_id)


def _shown_at(data: QueryDict) -> datetime:
    """Return when the page with the number was shown; now, if it is shown now."""
    text = data.get("shown_at", "")
    try:
        return min(datetime.fromisoformat(text), timezone.now())
    except (ValueError, TypeError):
        return timezone.now()


def _hidden(data: QueryDict) -> dict[str, str]:
    """Return the fields that the confirmation repeats."""
    names = [*MessageFilterForm.base_fields, "message"]
    fields = {name: str(data[name]) for name in names if data.get(name)}
    return {**fields, "shown_at": data.get("shown_at") or timezone.now().isoformat()}


@access.page
def pause(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the page that says what a pause will hold; a POST with a reason begins it."""
    viewer.require(Permission.OPERATE)
    data = request.POST if request.method == "POST" else request.GET
    cleaned = MessageFilterForm(viewer, data).valid_values()
    unknown = sorted(cleaned.keys() - PAUSABLE)
    scope = {name: cleaned.get(name, "") for name in sorted(PAUSABLE)}
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid() and not unknown:
        reason = form.cleaned_data["why"]
        row = Pause.objects.create(organization_id=viewer.organization_id, reason=reason, **scope)
        note(viewer, Action.PAUSED, row, changes=access.values(**scope), reason=reason)
        messages.success(request, f"{row} has begun. It lasts until somebody ends it.")
        return HttpResponseRedirect(reverse("admin:messaging_pause_change", args=[row.pk]))
    words = " ".join(filter(None, scope.values())) or "everything"
    return access.show(
        request,
        viewer,
        "pause",
        "Pause?",
        form=form,
        scope=words,
        unknown=unknown,
        hidden=cleaned.items() if not unknown else [],
    )


@access.page
def progress(request: HttpRequest, viewer: Viewer, action_id: UUID) -> HttpResponseBase:
    """Return the page with an action's progress; a POST stops it."""
    rows = BulkAction.objects.filter(organization_id=viewer.organization_id).defer("targets")
    action = get_object_or_404(rows, pk=action_id)
    if request.method == "POST":
        viewer.require(Permission.OPERATE)
        if bulk_actions.stop(viewer.organization_id, action_id):
            note(viewer, Action.STOPPED, action, label=action.get_kind_display())
        return HttpResponseRedirect(request.path)
    running = action.state == BulkAction.State.RUNNING
    return access.show(request, viewer, "action", str(action), action=action, running=running)


@access.page
@require_GET
def history(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the latest actions of an organization."""
    rows = BulkAction.objects.filter(organization_id=viewer.organization_id).defer("targets")
    return access.show(
        request, viewer, "actions", "Actions", actions=list(rows.order_by("-pk")[:LISTED])
    )
