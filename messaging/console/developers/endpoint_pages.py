"""Add, change, test, disable and delete webhook endpoints, replace their secrets, replay a period.

The changes are those of `managed_endpoints`, which REST makes too.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from messaging.console import access
from messaging.console.access import Question, Viewer
from messaging.console.developers.webhook_pages import DISABLED, endpoint_of, may
from messaging.console.filters.filter_form import MomentField
from messaging.models import WebhookEndpoint
from messaging.models.endpoints import ALL_EVENTS, TYPES
from messaging.webhooks import endpoint_inputs, endpoints, managed_endpoints, replays
from messaging.webhooks.endpoint_inputs import EndpointUpdateInput
from messaging.webhooks.managed_endpoints import EndpointScope
from rme.core import errors
from rme.core.http.parsing import parse
from rme.tenants.access.roles import Permission
from rme.tenants.admin import shown_once
from rme.tenants.oauth.makers import missing_rights
from rme.tenants.oauth.permissions import event_rights

OVERLAP_HOURS = int(endpoints.OVERLAP / timedelta(hours=1))


_ALL_WORDS = format_lazy("{} ({})", ALL_EVENTS, gettext_lazy("all events of messages"))


class EndpointForm(forms.Form):
    """The address of an endpoint, and the events that it gets."""

    url = forms.CharField(
        max_length=500,
        label=gettext_lazy("URL"),
        help_text=gettext_lazy("rme sends events to this https address."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "https://"}),
    )
    description = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Description"),
        help_text=gettext_lazy("The name of the endpoint in lists."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    types = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(each, _ALL_WORDS if each == ALL_EVENTS else each) for each in TYPES],
        error_messages={"required": gettext_lazy("Choose at least one event.")},
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, viewer: Viewer, row: WebhookEndpoint | None = None, data: QueryDict | None = None
    ) -> None:
        names = ("url", "description", "types")
        initial = {name: getattr(row, name) for name in names} if row else None
        super().__init__(data, initial=initial, label_suffix="", auto_id="endpoint_%s")
        self.viewer = viewer

    def clean_types(self) -> list[str]:
        """Refuse events of things that the person may not see."""
        types: list[str] = self.cleaned_data["types"]
        viewer = self.viewer
        lacking = missing_rights(viewer.user, viewer.organization_id, event_rights(types))
        if lacking:
            rights = "; ".join(str(each.label) for each in lacking)
            text = _("Your role doesn't include: %(rights)s.")
            raise forms.ValidationError(text % {"rights": rights})
        return types


class PeriodForm(forms.Form):
    """The period whose events are replayed."""

    since = MomentField(label=gettext_lazy("From"))
    until = MomentField(
        required=False,
        label=gettext_lazy("Until"),
        help_text=gettext_lazy("Now if empty."),
    )


@access.page_for(Permission.SEE_SETTINGS)
def add(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a new endpoint; a POST adds it and shows its secret once."""
    viewer.require(Permission.CHANGE_WEBHOOKS)
    form = EndpointForm(viewer, data=request.POST if request.method == "POST" else None)
    if row := _store(viewer, form):
        messages.success(request, _("%(endpoint)s is added.") % {"endpoint": row})
        return _show_secret(request, row)
    return _show(request, viewer, "developers/endpoint", _("Add a webhook endpoint"), form=form)


@access.page_for(Permission.SEE_SETTINGS)
def change(request: HttpRequest, viewer: Viewer, endpoint_id: int) -> HttpResponseBase:
    """Return the form of an endpoint; a POST does what its button says."""
    viewer.require(Permission.CHANGE_WEBHOOKS)
    row = endpoint_of(viewer, endpoint_id)
    form, question = EndpointForm(viewer, row), None
    if request.method == "POST":
        button = request.POST.get("do", "")
        question = None if request.POST.get("sure") else _question(button)
        if button == "save":
            form = EndpointForm(viewer, row, request.POST)
            if stored := _store(viewer, form, row):
                messages.success(request, _("%(endpoint)s is saved.") % {"endpoint": stored})
                return HttpResponseRedirect(_url(row))
        elif not question:
            act = _ACTS.get(button)
            if act:
                return act(request, viewer, row)
            messages.error(request, _("Nothing was done. Choose one of the buttons."))
    return _show(
        request,
        viewer,
        "developers/endpoint",
        _("Settings of %(endpoint)s") % {"endpoint": row},
        endpoint=row,
        form=form,
        question=question,
    )


@access.page_for(Permission.SEE_SETTINGS)
def replay(request: HttpRequest, viewer: Viewer, endpoint_id: int) -> HttpResponseBase:
    """Return the form of a period; a POST queues its events again, delivered or not."""
    viewer.require(Permission.CHANGE_WEBHOOKS)
    row = endpoint_of(viewer, endpoint_id)
    form = PeriodForm(request.POST or None, label_suffix="", auto_id="replay_%s")
    if form.is_valid():
        try:
            typed = {name: value.isoformat() for name, value in form.cleaned_data.items() if value}
            period = endpoint_inputs.read_period(parse(endpoint_inputs.REPLAY, typed))
            count = managed_endpoints.replay(_scope(viewer), str(row.pk), period, viewer.actor)
        except errors.InvalidPayload as refusal:
            access.add_details(form, refusal)
        else:
            text = ngettext(
                "%(count)s event is queued for %(endpoint)s.",
                "%(count)s events are queued for %(endpoint)s.",
                count,
            )
            messages.success(request, text % {"count": f"{count:,}", "endpoint": row})
            if count >= replays.REPLAY_LIMIT:
                messages.warning(request, _("There are more. Replay a later period, too."))
            return HttpResponseRedirect(_url(row))
    return _show(
        request,
        viewer,
        "developers/replay",
        _("Replay events to %(endpoint)s") % {"endpoint": row},
        endpoint=row,
        form=form,
    )


def _show(
    request: HttpRequest, viewer: Viewer, template: str, title: str, **context: Any
) -> HttpResponseBase:
    context = {**may(viewer), **context}
    return access.show(request, viewer, template, title, **context)


def _scope(viewer: Viewer) -> EndpointScope:
    return EndpointScope(viewer.organization_id)


def _url(row: WebhookEndpoint) -> str:
    return reverse("console:webhook_deliveries", args=[row.organization_id, row.pk])


def _show_secret(request: HttpRequest, row: WebhookEndpoint) -> HttpResponseBase:
    return shown_once.redirect(request, _url(row), row, (_("Signing secret"), row.secret))


def _store(
    viewer: Viewer, form: EndpointForm, row: WebhookEndpoint | None = None
) -> WebhookEndpoint | None:
    """Add an endpoint or change one; None if the form is not valid, which then says why."""
    if not form.is_valid():
        return None
    scope, cleaned = _scope(viewer), form.cleaned_data
    try:
        if row is None:
            new = parse(endpoint_inputs.ENDPOINT, cleaned)
            return managed_endpoints.create(scope, new, viewer.actor)
        changed = parse(endpoint_inputs.ENDPOINT_UPDATE, cleaned)
        return managed_endpoints.update(scope, str(row.pk), changed, viewer.actor)
    except errors.InvalidPayload as refusal:
        access.add_details(form, refusal)
        return None


def _switch(*, enabled: bool) -> Callable[[HttpRequest, Viewer, WebhookEndpoint], HttpResponseBase]:
    """Return the act that enables or disables an endpoint."""

    def act(request: HttpRequest, viewer: Viewer, row: WebhookEndpoint) -> HttpResponseBase:
        fields = EndpointUpdateInput(enabled=enabled)
        reason = endpoints.DISABLED_BY_HAND
        managed_endpoints.update(_scope(viewer), str(row.pk), fields, viewer.actor, reason)
        done = _("%(endpoint)s is enabled.") if enabled else _("%(endpoint)s is disabled.")
        messages.success(request, done % {"endpoint": row})
        return HttpResponseRedirect(_url(row))

    return act


def _send_test(request: HttpRequest, viewer: Viewer, row: WebhookEndpoint) -> HttpResponseBase:
    """Queue a made-up event."""
    try:
        managed_endpoints.test(_scope(viewer), str(row.pk), viewer.actor)
    except errors.InvalidPayload:
        messages.error(request, DISABLED)
    else:
        messages.success(request, _("The test event is on its way. Reload to see the answer."))
    return HttpResponseRedirect(_url(row))


def _rotate(request: HttpRequest, viewer: Viewer, row: WebhookEndpoint) -> HttpResponseBase:
    """Replace the secret, and show the new one once."""
    rotated = managed_endpoints.rotate_secret(_scope(viewer), str(row.pk), viewer.actor)
    return _show_secret(request, rotated)


def _delete(request: HttpRequest, viewer: Viewer, row: WebhookEndpoint) -> HttpResponseBase:
    """Delete the endpoint with its deliveries."""
    managed_endpoints.delete(_scope(viewer), str(row.pk), viewer.actor)
    messages.success(request, _("%(endpoint)s is deleted.") % {"endpoint": row})
    return HttpResponseRedirect(reverse("console:webhooks", args=[viewer.organization_id]))


_ACTS: dict[str, Callable[[HttpRequest, Viewer, WebhookEndpoint], HttpResponseBase]] = {
    "test": _send_test,
    "enable": _switch(enabled=True),
    "disable": _switch(enabled=False),
    "rotate": _rotate,
    "delete": _delete,
}


def _question(do: str) -> Question | None:
    """Return the question that an act needs first, if any."""
    match do:
        case "rotate":
            text = _(
                "Requests are signed with both secrets for %(hours)s hours, then with the new one."
            )
            effect = text % {"hours": OVERLAP_HOURS}
            return Question(do, _("Create a new secret"), _("Replace the signing secret?"), effect)
        case "delete":
            effect = _(
                "Its waiting events and its delivery log are deleted, too. You can't undo this."
            )
            return Question(do, _("Delete endpoint"), _("Delete this endpoint?"), effect)
    return None
