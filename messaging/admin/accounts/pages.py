"""The page of a provider account's settings.

The console lists accounts, sets up new ones, and checks, tests, activates and pauses them.
"""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextInputWidget

from messaging import providers
from messaging.admin.console_lists import ListInConsole, to_console
from messaging.admin.policy import PolicyAdmin
from messaging.console.routing import account_form, lanes
from messaging.models import ProviderAccount
from messaging.policy import connection_check, organization_policy
from rme.tenants.access.roles import Permission
from rme.tenants.admin.choices import TenantForm

MAIN = ("organization", "name", "kind", "channel", "priority", "weight", "match", "rate", "state")
State = ProviderAccount.State


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
class ProviderAccountAdmin(ListInConsole, PolicyAdmin):
    write_permission: Permission = Permission.CHANGE_SETTINGS
    console_list = "providers"
    readonly_fields = ("service", "public_id", "callback_url", "state_reason", "connection")
    actions_detail: ClassVar[list[str]] = ["check_and_test"]
    secret_fields: ClassVar[frozenset[str]] = account_form.SECRET_FIELDS

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """Lead to the console, which asks for the kind and then for its settings alone."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return to_console(request, "providers", self.write_permission)

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
        names = tuple("service" if obj and name == "kind" else name for name in MAIN)
        main = [(None, {"fields": (*names, *(status if obj else ()))})]
        provider = providers.REGISTRY.get(obj.kind) if obj else None
        if provider is None or not self.has_change_permission(request, obj):
            return main  # a reader has no form, and the settings are its fields
        names = account_form.setting_names(provider.kind)
        return [*main, (f"{provider.label}: settings", {"fields": names})] if names else main

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> object:
        fields = super().get_readonly_fields(request, obj)
        # What is not active yet is activated in the console, which asks for a check.
        is_draft = isinstance(obj, ProviderAccount) and obj.state == State.DRAFT
        state = ("state",) if is_draft else ()
        return (*fields, "kind", "channel", *state) if obj else fields

    @admin.display(description="Service")
    def service(self, row: ProviderAccount) -> str:
        """Return the label of the account's provider."""
        return dict(providers.choices()).get(row.kind, row.kind)

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
