"""The list of provider accounts of all organizations, and the page of an account's settings.

A new account is set up in the console, which also checks, tests and activates accounts.
"""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextInputWidget

from messaging import providers
from messaging.admin.policy import PolicyAdmin
from messaging.console.routing import account_form, lanes, routing_words
from messaging.models import ProviderAccount
from messaging.policy import account_states, connection_check, organization_policy
from messaging.reports import account_hour
from rme.tenants import audit
from rme.tenants.admin.choices import TenantForm
from rme.tenants.roles import Permission, organizations_for

MAIN = ("organization", "name", "kind", "channel", "priority", "weight", "match", "rate", "state")
State = ProviderAccount.State


class ReasonForm(forms.Form):
    """The reason of a pause, which the list of accounts and the audit show."""

    reason = forms.CharField(max_length=500, widget=UnfoldAdminTextInputWidget)


class AccountForm(account_form.SettingsForm, TenantForm):
    """The settings of a stored account."""

    class Meta(account_form.SettingsForm.Meta):
        fields = MAIN
        widgets: ClassVar[dict[str, Any]] = {"match": UnfoldAdminTextInputWidget()}

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        if "state" in self.fields:  # what was active does not become a draft again
            field: Any = self.fields["state"]
            field.choices = [each for each in State.choices if each[0] != State.DRAFT]


@admin.register(ProviderAccount)
class ProviderAccountAdmin(PolicyAdmin):
    write_permission: Permission = Permission.CHANGE_SETTINGS
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
    readonly_fields = ("public_id", "callback_url", "state_reason", "connection")
    actions: ClassVar[list[str]] = ["pause", "activate"]
    actions_detail: ClassVar[list[str]] = ["check_and_test"]
    secret_fields: ClassVar[frozenset[str]] = account_form.SECRET_FIELDS

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """Lead to the console, which asks for the kind and then for its settings alone."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        own = organizations_for(request, self.write_permission)
        chosen = own.filter(pk=request.GET.get("organization", "").replace("\0", "")).first()
        if chosen is None:
            return redirect("console:first_providers")
        return redirect("console:providers", chosen.pk)

    def get_form(
        self,
        request: HttpRequest,
        obj: ProviderAccount | None = None,
        change: bool = False,
        **kwargs: object,
    ) -> Any:
        """Return the form with the settings of the account's kind alone."""
        if obj and obj.kind in providers.REGISTRY:
            kwargs["form"] = account_form.form_for(obj.kind, AccountForm)
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: ProviderAccount | None = None) -> object:
        status = ("state_reason", "callback_url", "connection", "public_id")
        main = [(None, {"fields": (*MAIN, *(status if obj else ()))})]
        provider = providers.REGISTRY.get(obj.kind) if obj else None
        if provider is None or not self.has_change_permission(request, obj):
            return main  # a reader has no form, and the settings are its fields
        names = account_form.setting_names(provider.kind)
        return [*main, (f"{provider.label}: settings", {"fields": names})] if names else main

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> object:
        shown = super().get_readonly_fields(request, obj)
        # What is not active yet is activated in the console, which asks for a check.
        is_draft = isinstance(obj, ProviderAccount) and obj.state == State.DRAFT
        state = ("state",) if is_draft else ()
        return (*shown, "kind", "channel", *state) if obj else shown

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
        return routing_words.CIRCUITS[row.sum.circuit]

    @admin.display(description="Last hour")
    def hour(self, row: Any) -> str:
        """Return a summary of the account's attempts."""
        return routing_words.hour(row.sum)

    @admin.display(description="Callback URL")
    def callback_url(self, row: ProviderAccount) -> str:
        """Return the URL for provider callbacks, to be configured at the provider."""
        return organization_policy.account_of(row).callback_url

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

    @action(description="Check, test and activate", permissions=["view"])
    def check_and_test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the account's page of the console."""
        row = self.get_object(request, object_id)
        return HttpResponseRedirect(lanes.account_url(row))

    @admin.action(description="Pause", permissions=["change"])
    def pause(
        self, request: HttpRequest, queryset: QuerySet[ProviderAccount]
    ) -> HttpResponse | None:
        """Pause accounts, after a question for the reason."""
        form = ReasonForm(request.POST if "reason" in request.POST else None)
        if form.is_valid():
            rows = self._changeable(request, queryset.exclude(state=State.DRAFT))
            actor, reason = audit.actor_of(request), form.cleaned_data["reason"]
            account_states.change(rows, State.PAUSED, actor, reason)
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
        """Activate accounts, except for those that no check has found to work yet."""
        rows = self._changeable(request, queryset)
        unchecked = [row for row in rows if account_states.needs_check(row)]
        ready = [row for row in rows if row not in unchecked]
        account_states.change(ready, State.ACTIVE, audit.actor_of(request))
        if unchecked:
            names = ", ".join(row.name for row in unchecked)
            text = f"Not activated: {names}. Check the connection on the account's page first."
            messages.warning(request, text)

    def _changeable(
        self, request: HttpRequest, rows: QuerySet[ProviderAccount]
    ) -> list[ProviderAccount]:
        # a user may be an owner in one organization and a reader in another
        return [row for row in rows if self.has_change_permission(request, row)]
