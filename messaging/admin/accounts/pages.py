"""Pages for provider accounts: settings, the last hour, pausing, draining and routing order."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from unfold.decorators import action

from messaging import providers
from messaging.admin.accounts import connection_check
from messaging.admin.accounts.action_forms import ORDER, ReasonForm, StateForm, TestForm
from messaging.admin.accounts.settings_form import (
    MAIN,
    SECRET_FIELDS,
    AccountForm,
    setting_name,
)
from messaging.admin.policy import PolicyAdmin
from messaging.delivery.accounts import CircuitState
from messaging.models import ProviderAccount
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from messaging.reports import account_hour
from rme.tenants import audit
from rme.tenants.roles import Permission, organizations_for

CIRCUITS = {
    CircuitState.CLOSED: "closed, it sends",
    CircuitState.OPEN: "open, it does not send for now",
    CircuitState.HALF_OPEN: "half open, a few sends probe it",
}
"""The state of a circuit breaker in words."""


@admin.register(ProviderAccount)
class ProviderAccountAdmin(PolicyAdmin):
    write_permission: Permission = Permission.CHANGE_SETTINGS
    form = AccountForm
    list_display = (
        "name",
        "kind",
        "channel",
        "priority",
        "weight",
        "rate",
        "state",
        "state_reason",
        "circuit",
        "hour",
        "organization",
    )
    list_filter = ("channel", "kind", "state")
    search_fields = ("name",)
    readonly_fields = ("public_id", "callback_url", "state_reason", "connection", "last_hour")
    actions: ClassVar[list[str]] = ["pause", "activate"]
    change_form_outer_before_template = "admin/rme/account_check.html"
    actions_detail: ClassVar[list[str]] = ["test_send", "set_aside"]
    secret_fields: ClassVar[frozenset[str]] = SECRET_FIELDS
    # The theme shows a field while its expression is true: those of the chosen kind. The page of a
    # stored account has no choice of kind, and only its kind's fields.
    conditional_fields: ClassVar[dict[str, str]] = {
        setting_name(kind, name): f"typeof kind === 'undefined' || kind === '{kind}'"
        for kind, provider in providers.REGISTRY.items()
        for name in provider.Settings.model_fields
    }

    def get_fieldsets(self, request: HttpRequest, obj: ProviderAccount | None = None) -> object:
        status = ("state_reason", "callback_url", "connection", "last_hour", "public_id")
        main = [(None, {"fields": (*MAIN, *(status if obj else ()))})]
        if obj and not self.has_change_permission(request, obj):
            return main  # a reader has no form, and the settings are its fields
        return main + [
            (
                f"{provider.label}: settings",
                {"fields": [setting_name(kind, name) for name in provider.Settings.model_fields]},
            )
            for kind, provider in providers.REGISTRY.items()
            if provider.Settings.model_fields and (obj is None or obj.kind == kind)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> object:
        shown = super().get_readonly_fields(request, obj)
        return (*shown, "kind", "channel") if obj else shown

    def get_changelist_instance(self, request: HttpRequest) -> object:
        """Read the last hour of all accounts of the page by one query."""
        shown = super().get_changelist_instance(request)
        sums = account_hour.read_summaries(shown.result_list)
        for row in shown.result_list:
            row.sum = sums[row.pk]
        return shown

    @admin.display(description="Circuit")
    def circuit(self, row: Any) -> str:
        """Return the state of the account's circuit breaker."""
        return CIRCUITS[row.sum.circuit]

    @admin.display(description="Last hour")
    def hour(self, row: Any) -> str:
        """Return a summary of the account's attempts."""
        summary = row.sum
        if not summary.sends:
            return "nothing sent"
        text = f"{summary.sends} sent: {summary.accepted} accepted, {summary.failed} failed"
        return text if summary.p95_ms is None else f"{text}, p95 {summary.p95_ms} ms"

    @admin.display(description="Callback URL")
    def callback_url(self, row: ProviderAccount) -> str:
        """Return the URL for provider callbacks, to be configured at the provider."""
        return organization_policy.account_of(row).callback_url

    @admin.display(description="Last hour")
    def last_hour(self, row: ProviderAccount) -> str:
        """Return a table of the account's attempts by outcome, and the circuit's state."""
        hour = account_hour.read(row)
        rows = format_html_join(
            "",
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (
                    each.sends,
                    each.outcome,
                    each.reason,
                    each.p95_ms,
                    date_format(each.last_at, "DATETIME_FORMAT"),
                )
                for each in hour.rows
            ),
        )
        head = format_html_join(
            "",
            '<th scope="col" class="text-left pr-4">{}</th>',
            ((name,) for name in ("Sends", "Outcome", "Reason", "p95, ms", "Last")),
        )
        table = "<p>Circuit: {}</p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        failed = urlencode({"status": Status.FAILED, "provider": row.name, "period": 1})
        listed = reverse("console:messages", args=[row.organization_id])
        link = '<p><a class="c-link" href="{}?{}">What failed in the last hour</a></p>'
        return format_html(table + link, CIRCUITS[hour.circuit], head, rows, listed, failed)

    @admin.display(description="Connection")
    def connection(self, row: ProviderAccount) -> str:
        """Return what the last check or test found, and when."""
        return connection_check.in_words(row)

    def save_model(
        self, request: HttpRequest, obj: ProviderAccount, form: forms.ModelForm, change: bool
    ) -> None:
        """Store the account. Other settings have not been checked."""
        if change and connection_check.has_other_settings(obj):
            obj.checked_at, obj.check_problem = None, ""
        super().save_model(request, obj, form, change)

    def get_urls(self) -> list[URLPattern]:
        """Return the page's paths, with that of the button Check connection."""
        view = self.admin_site.admin_view(self.check_connection)
        name = "messaging_provideraccount_check"
        return [path("<path:object_id>/check/", view, name=name), *super().get_urls()]

    def check_connection(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Log in without sending, store what came of it, and lead back to the account."""
        row = self.get_object(request, object_id)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        outcome = connection_check.check(row)
        if outcome is None:
            messages.warning(request, "It cannot be checked without sending: use Test send.")
        else:
            text = connection_check.in_words(row)
            show = messages.error if row.check_problem else messages.success
            show(request, f"{row.name}: {text}")
            self.note(request, row, f"connection: {text}", audit.Action.TESTED)
        return redirect("admin:messaging_provideraccount_change", row.pk)

    def _set_state(
        self,
        request: HttpRequest,
        queryset: QuerySet[ProviderAccount],
        state: str,
        reason: str = "",
    ) -> None:
        # a user may be an owner in one organization and a reader in another
        rows = [row for row in queryset if self.has_change_permission(request, row)]
        chosen = ProviderAccount.objects.filter(pk__in=[row.pk for row in rows])
        with transaction.atomic():
            chosen.update(state=state, state_reason=reason)
            entries = [
                audit.about(
                    row,
                    audit.Action.CHANGED,
                    changes={"state": [row.state, str(state)]},
                    reason=reason,
                )
                for row in rows
            ]
            self.record(request, entries)
        for organization_id in {row.organization_id for row in rows}:
            self.changed(organization_id)

    @action(description="Pause, drain or reorder", url_path="set-aside", permissions=["change"])
    def set_aside(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Pause, drain or activate the account, or change its routing order, with a reason."""
        row = self.get_object(request, object_id)
        current = {name: getattr(row, name) for name in ("state", *ORDER)}
        form = StateForm(request.POST or None, initial=current, row=row)
        result = ""
        if form.is_valid():
            given = form.cleaned_data
            self._reorder(request, row, given)
            if given["state"] != row.state or given["state_reason"] != row.state_reason:
                chosen = ProviderAccount.objects.filter(pk=row.pk)
                self._set_state(request, chosen, given["state"], given["state_reason"])
            result = f"{row.name} is {given['state']}."
        question = (
            f"{row.name} finishes what it is sending; other accounts take over the rest. A paused "
            "account sends nothing; a draining one only deliveries that it has tried before. "
            "A lower priority is used first; the weight is the share among equal priorities."
        )
        title = "Pause, drain or reorder"
        context = {"title": title, "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)

    def _reorder(
        self, request: HttpRequest, row: ProviderAccount, given: dict[str, object]
    ) -> None:
        """Store another routing order of the account, and log the reason."""
        moved = {name: given[name] for name in ORDER if given[name] != getattr(row, name)}
        if moved:
            ProviderAccount.objects.filter(pk=row.pk).update(**moved)
            self.changed(row.organization_id)
            changes = {name: [str(getattr(row, name)), str(moved[name])] for name in moved}
            self.note(request, row, "", changes=changes, reason=str(given["reason"]))

    @admin.action(description="Pause", permissions=["change"])
    def pause(
        self, request: HttpRequest, queryset: QuerySet[ProviderAccount]
    ) -> HttpResponse | None:
        """Pause accounts, after a question for the reason."""
        form = ReasonForm(request.POST if "reason" in request.POST else None)
        if form.is_valid():
            state, reason = ProviderAccount.State.PAUSED, form.cleaned_data["reason"]
            self._set_state(request, queryset, state, reason)
            return None
        own = organizations_for(request, self.write_permission)
        rows = list(queryset.filter(organization__in=own))
        names = ", ".join(row.name for row in rows)
        context = {
            "title": "Pause",
            "chosen": [row.pk for row in rows],
            "action": "pause",
            "statement": f"Pause {names}? Other accounts of the channel take over; without one, "
            "messages wait.",
            "form": form,
        }
        return self.show(request, "decide", None, **context)

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, queryset: QuerySet[ProviderAccount]) -> None:
        """Activate accounts."""
        self._set_state(request, queryset, ProviderAccount.State.ACTIVE)

    @action(description="Test send", url_path="test-send", permissions=["change"])
    def test_send(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send one message through this account alone, and show the outcome."""
        row = self.get_object(request, object_id)
        form = TestForm(request.POST or None, channel=row.channel)
        result = ""
        if form.is_valid():
            outcome = connection_check.send_test(row, form.cleaned_data["to"])
            connection_check.store(row, outcome)
            result = connection_check.outcome_text(outcome)
            self.note(request, row, f"send: {result}", audit.Action.TESTED)
        question = f"Send a test through {row.name}. No message is recorded."
        context = {"title": "Test send", "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)
