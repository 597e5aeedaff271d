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
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer, note
from messaging.console.actions import bulk_actions, tasks
from messaging.console.actions.bulk_actions import ActionKind
from messaging.console.filters import message_filter
from messaging.console.filters.message_filter import MessageFilterForm
from messaging.models import BulkAction, Delivery, Pause
from messaging.reports import delivery_list
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import ids
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

LISTED = 50
QUESTIONS = {
    ActionKind.CANCEL: (
        _("Cancel"),
        ngettext_lazy(
            "Cancel %(number)s scheduled send?", "Cancel %(number)s scheduled sends?", "count"
        ),
        _("They are not sent."),
    ),
    ActionKind.RESEND: (
        _("Resend"),
        ngettext_lazy("Resend %(number)s message?", "Resend %(number)s messages?", "count"),
        _("They go out as new messages and pass all checks."),
    ),
    ActionKind.LIFT: (
        _("Lift suppressions"),
        ngettext_lazy("Lift %(number)s suppression?", "Lift %(number)s suppressions?", "count"),
        _("rme can send messages there again."),
    ),
    ActionKind.SEND_AGAIN: (
        _("Resend"),
        ngettext_lazy("Resend %(number)s message?", "Resend %(number)s messages?", "count"),
        _(
            "rme sends them to the provider once more. If it accepted them the first time, their "
            "recipients get them twice. rme checks consent, suppressions and pauses again, and "
            "the time until they expire starts over."
        ),
    ),
    ActionKind.GIVE_UP: (
        _("Give up"),
        ngettext_lazy("Give up %(number)s message?", "Give up %(number)s messages?", "count"),
        _(
            "They end as failed and are not sent again. They may have arrived: a late receipt "
            "still changes them to delivered."
        ),
    ),
}
"""The button of each action, its question, and its effect."""
DECISION_REASON = _(
    "Your programs can read it in the message's history, and the audit keeps it. Don't name the "
    "recipient."
)
PAUSABLE = frozenset({"channel", "category", "template"})
"""What a pause can name."""


class ActionReasonForm(forms.Form):
    """Why an action is ordered: the audit keeps it."""

    # Not `reason`, which is a filter of the same page.
    why = forms.CharField(
        max_length=500, label=_("Reason"), widget=forms.TextInput(attrs={"autocomplete": "off"})
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
    problem: str = ""
    """Why nothing is chosen, as a sentence; empty if the filters mean what they say."""


def _form(request: HttpRequest, kind: BulkAction.Kind) -> ActionReasonForm:
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    if kind in bulk_actions.DECISIONS:
        form.fields["why"].help_text = DECISION_REASON
    elif "message" in request.POST:  # one message, which the person has just read
        form.fields["why"].required = False
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
    button, question, effect = QUESTIONS[chosen_kind]
    count = len(choice.targets)
    return access.show(
        request,
        viewer,
        "action_choose",
        str(button),
        form=form,
        button=button,
        choice=choice,
        count=count,
        question=question % {"count": count, "number": f"{count:,}"},
        effect=effect,
        hidden=_hidden(data),
        ticked=_ticked(data),
    )


def _kind(text: str) -> ActionKind:
    try:
        return ActionKind(text.upper())
    except ValueError:
        raise Http404 from None


def _choice(viewer: Viewer, kind: ActionKind, data: QueryDict) -> ActionChoice:
    """Return the rows that filters, or a message's id, mean for an action."""
    contact_id = ""
    if ticked := _ticked(data):
        return _of_ticked(viewer, kind, ticked)
    if message_id := ids.parse(data.get("message", "")):
        delivery_filter, scope = DeliveryFilter(message_id=message_id), f"message {message_id}"
        limit = message_filter.RECIPIENTS
    else:
        form = MessageFilterForm(viewer, data)
        choice = message_filter.read(form)
        if choice.matches_nobody or choice.problem or form.errors:
            problem = choice.problem or _problem_of(form)
            return ActionChoice([], form.in_words, is_cut=False, problem=problem)
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


def _problem_of(form: MessageFilterForm) -> str:
    """Return which filters aren't valid: without them an action chooses more than was meant."""
    if not form.errors:
        return ""
    words = ", ".join(f"{form[name].label}: {form.typed[name]}" for name in form.errors)
    return gettext("Some filters aren't valid: %(filters)s.") % {"filters": words}


def _ticked(data: QueryDict) -> list[UUID]:
    """Return the ids of the deliveries that were ticked in a list."""
    parsed = [ids.parse(each) for each in data.getlist(bulk_actions.TICKED)]
    return [each for each in parsed if each][: bulk_actions.TICKED_LIMIT]


def _of_ticked(viewer: Viewer, kind: ActionKind, ticked: Sequence[UUID]) -> ActionChoice:
    """Return those of the ticked deliveries that an action is for; two queries at most."""
    rows = Delivery.objects.filter(
        organization_id=viewer.organization_id,
        pk__in=ticked,
        status__in=bulk_actions.STATUSES[kind],
    )
    if kind is ActionKind.LIFT:
        rows = rows.filter(reason="SUPPRESSED")
    if kind in bulk_actions.DECISIONS:
        rows = rows.filter(due_at__isnull=True)
    targets = list(rows.order_by("pk").values_list("pk", flat=True))
    if kind is ActionKind.LIFT:
        targets = bulk_actions.suppressions_of(viewer.organization_id, targets)
    scope = ngettext("%(number)s ticked message", "%(number)s ticked messages", len(ticked))
    return ActionChoice(targets, scope % {"number": len(ticked)}, is_cut=False)


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
    filters = MessageFilterForm(viewer, data)
    cleaned = filters.valid_values()
    unknown = sorted((cleaned.keys() - PAUSABLE) | filters.errors.keys())
    scope = {name: cleaned.get(name, "") for name in sorted(PAUSABLE)}
    form = ActionReasonForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid() and not unknown:
        reason = form.cleaned_data["why"]
        row = Pause.objects.create(organization_id=viewer.organization_id, reason=reason, **scope)
        note(viewer, Action.PAUSED, row, changes=access.values(**scope), reason=reason)
        messages.success(request, gettext("Paused until somebody ends the pause."))
        return HttpResponseRedirect(reverse("admin:messaging_pause_change", args=[row.pk]))
    words = (
        wording.channel(scope["channel"]),
        scope["category"] and wording.category(scope["category"]),
        scope["template"],
    )
    return access.show(
        request,
        viewer,
        "pause",
        gettext("Pause"),
        form=form,
        scope=", ".join(filter(None, words)) or gettext("Everything"),
        unknown=[filters.fields[name].label for name in unknown],
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
    return access.show(
        request,
        viewer,
        "action",
        _in_words(viewer, action),
        action=action,
        reason=viewer.without(action.reason, None),
        running=running,
    )


@access.page
@require_GET
def history(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the latest actions of an organization."""
    rows = BulkAction.objects.filter(organization_id=viewer.organization_id).defer("targets")
    return access.show(
        request,
        viewer,
        "actions",
        gettext("Bulk actions"),
        actions=[(each, _in_words(viewer, each)) for each in rows.order_by("-pk")[:LISTED]],
    )


def _in_words(viewer: Viewer, action: BulkAction) -> str:
    """Return an action as a person may read it: a scope that names somebody may be an address."""
    names_somebody = action.contact_id or action.kind == ActionKind.LIFT
    if names_somebody and not viewer.sees_addresses:
        return action.get_kind_display()
    return str(action)
