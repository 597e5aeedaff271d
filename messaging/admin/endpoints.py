"""Pages for outbound webhooks: endpoints, their last deliveries, and replay."""

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from unfold.decorators import action
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.models.endpoints import TYPES
from messaging.webhooks import delivery_log, endpoints, replays, signatures
from rme.core.db.clock import iso
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.programs import ProgramForm
from rme.tenants.admin.shown_once import ShownOnce
from rme.tenants.oauth.permissions import event_rights

REPLAY_DAYS = 3
_COLUMNS = ("When", "Type", "webhook-id", "State", "Tries", "Answer", "ms", "")


class EndpointForm(ProgramForm):
    """A URL that may be called, and at least one type of event."""

    types = forms.MultipleChoiceField(
        choices=[(name, name) for name in TYPES],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text="The events that are sent; message.* is all types of messages, also future ones.",
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("organization", "url", "description", "types")

    def clean_url(self) -> str:
        """Refuse a URL that would never be called."""
        url: str = self.cleaned_data["url"]
        if problem := endpoints.url_error(url):
            raise forms.ValidationError(f"{problem[0].upper()}{problem[1:]}.")
        return url

    def clean(self) -> dict[str, Any]:
        """Limit the endpoints of an organization, and the events to what the person may see."""
        cleaned = super().clean()
        self.require_rights("types", event_rights(cleaned.get("types", ())))
        organization = self.own_organization()
        if organization and not self.instance.pk:
            count = WebhookEndpoint.objects.filter(organization=organization).count()
            if count >= endpoints.PER_ORGANIZATION:
                raise forms.ValidationError(
                    f"An organization has at most {endpoints.PER_ORGANIZATION} endpoints."
                )
        return cleaned


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ShownOnce):
    read_permission: Permission = Permission.SEE_SETTINGS
    write_permission: Permission = Permission.CHANGE_WEBHOOKS
    form = EndpointForm
    secret_fields: ClassVar[frozenset[str]] = frozenset({"secret", "former_secret"})
    list_display = ("__str__", "url", "state", "last_success_at", "organization")
    list_filter = ("enabled",)
    list_select_related = ("organization",)
    search_fields = ("url", "description")
    readonly_fields = ("state", "last_success_at", "last_attempts")
    actions_detail: ClassVar[list[str]] = ["test_event", "replay", "switch", "rotate"]

    def get_fields(self, request: HttpRequest, obj: object = None) -> object:
        fields = EndpointForm.Meta.fields
        return (*fields, *self.readonly_fields) if obj else fields

    @admin.display(description="State")
    def state(self, row: WebhookEndpoint) -> str:
        """Return whether the endpoint is enabled, failing or disabled."""
        if not row.enabled:
            return f"Disabled: {row.disabled_reason}"
        if row.failing_since:
            return f"Failing since {iso(row.failing_since)}"
        return "Enabled"

    @admin.display(description="Last attempts")
    def last_attempts(self, row: WebhookEndpoint) -> str:
        """Return a table of the last deliveries with their answers, and the number that waits."""
        head = format_html_join(
            "", '<th scope="col" class="text-left pr-4">{}</th>', ((name,) for name in _COLUMNS)
        )
        cells = "<td>{}</td>" * len(_COLUMNS)
        body = format_html_join(
            "", f"<tr>{cells}</tr>", map(_cells, delivery_log.latest_attempted(row))
        )
        pending = delivery_log.count_pending(row)
        table = "<p>Waiting: {}</p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        return format_html(table, f"{pending}" if pending <= 1000 else "more than 1000", head, body)

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)  # a class made for this request
        form.user = request.user
        return form

    # --- saving -----------------------------------------------------------------------------------
    def save_model(
        self, request: HttpRequest, obj: WebhookEndpoint, form: ModelForm, change: bool
    ) -> None:
        if not change:
            obj.secret = signatures.new_secret()
            obj.save()
        elif form.changed_data:
            # Only these fields: the dispatcher may be updating the others.
            obj.save(update_fields=form.changed_data)
            if "url" in form.changed_data and obj.enabled:
                endpoints.enable(obj)  # the failures were those of the former URL

    def response_add(self, request: HttpRequest, obj: WebhookEndpoint, *_: object) -> HttpResponse:
        return self.show_once(request, obj, ("Signing secret", obj.secret))

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        key = obj.pk
        super().delete_model(request, obj)
        delivery_log.delete_deliveries(key)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        keys = list(queryset.values_list("pk", flat=True))
        super().delete_queryset(request, queryset)
        for key in keys:
            delivery_log.delete_deliveries(key)

    # --- buttons ----------------------------------------------------------------------------------
    @action(description="Send a test event", url_path="test-event", permissions=["change"])
    def test_event(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send a made-up event to the endpoint."""
        row = self.get_object(request, object_id)
        result = ""
        if request.method == "POST" and not row.enabled:
            result = "The endpoint is disabled."
        elif request.method == "POST":
            result = f"{replays.queue_test(row)} is on its way: see the last attempts."
            self.note(request, row, "event", audit.Action.TESTED)
        question = f"Send {row} an event of the type {replays.TEST_EVENT}?"
        context = {"title": "Send a test event", "question": question, "result": result}
        return self.show(request, "ask", row, **context)

    @action(description="Replay", permissions=["change"])
    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Replay failed deliveries, or all events of a period."""
        row = self.get_object(request, object_id)
        form = ReplayForm(request.POST or None)
        result = ""
        if form.is_valid():
            cleaned = form.cleaned_data
            if cleaned["what"] == FAILED:
                scope, count = "failed deliveries", replays.replay_failed(row)
            else:
                since, until = cleaned["since"], cleaned["until"]
                scope = f"{iso(since)} to {iso(until)}"
                count = replays.replay(row, since, until)
            full = " (there is more: begin later)" if count >= replays.REPLAY_LIMIT else ""
            result = f"{count} events are sent again{full}."
            self.note(request, row, f"{scope}: {count} events", audit.Action.REPLAYED)
        question = f"Send events to {row} again. They keep their webhook-id."
        context = {"title": "Replay", "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)

    @action(description="Enable or disable", permissions=["change"])
    def switch(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Disable or enable the endpoint."""
        row = self.get_object(request, object_id)
        result = ""
        if request.method == "POST":
            target = request.POST.get("to")
            if target == "on" and not row.enabled:
                endpoints.enable(row)
                self.note(request, row, "enabled again")
            elif target == "off" and row.enabled:
                endpoints.disable(row)
                self.note(request, row, "disabled")
            row = self.get_object(request, object_id)
            result = f"{row} is {'enabled' if row.enabled else 'disabled'}."
        title = "Disable" if row.enabled else "Enable again"
        question = (
            f"Disable {row}? Events in the meantime are not recorded for it."
            if row.enabled
            else f"Enable {row}? Waiting events are sent first; Replay sends those in between."
        )
        form = SwitchForm(initial={"to": "off" if row.enabled else "on"})
        context = {"title": title, "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)

    @action(description="New secret", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Create a new secret after a confirmation; the former one stays valid for a day."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            hours = int(endpoints.OVERLAP / timedelta(hours=1))
            question = (
                f"Create a new secret for {row}? The present one also signs for {hours} hours."
            )
            return self.ask(request, "New secret", question)
        secret = endpoints.rotate_secret(row)
        self.note(request, row, "new secret", audit.Action.KEY_ROTATED)
        return self.show_once(request, row, ("Signing secret", secret))


def _cells(delivery: WebhookDelivery) -> tuple[object, ...]:
    """Return the cells of a delivery's last attempt."""
    last = delivery.attempts[-1] if delivery.attempts else {}
    answer = last.get("error") or last.get("answer") or ""
    return (
        iso(delivery.tried_at),
        delivery.type,
        delivery.event_id,
        delivery.status,
        delivery.tries,
        last.get("status") or "–",
        last.get("ms", "–"),
        answer,
    )


FAILED, TIME = "FAILED", "TIME"


class ReplayForm(forms.Form):
    """Failed deliveries, or a period."""

    what = forms.ChoiceField(
        choices=[(FAILED, "Failed deliveries"), (TIME, "All events of a period")],
        widget=UnfoldAdminSelectWidget(),
    )
    since = forms.DateTimeField(
        required=False, widget=UnfoldAdminTextInputWidget, help_text="Like 2026-05-01T08:00Z."
    )
    until = forms.DateTimeField(required=False, widget=UnfoldAdminTextInputWidget)

    def clean(self) -> dict[str, Any]:
        """Require a period that is not too long."""
        cleaned = super().clean() or {}
        if cleaned.get("what") != TIME or self.errors:
            return cleaned
        for name in ("since", "until"):
            if cleaned.get(name) is None:
                self.add_error(name, "A time, like 2026-05-01T08:00Z.")
        if not self.errors and not (
            timedelta() < cleaned["until"] - cleaned["since"] <= timedelta(days=REPLAY_DAYS)
        ):
            self.add_error("until", f"After the beginning, by at most {REPLAY_DAYS} days.")
        return cleaned


class SwitchForm(forms.Form):
    """The requested state: to submit it twice changes nothing more."""

    to = forms.CharField(widget=forms.HiddenInput)
