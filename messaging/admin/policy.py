"""Pages for categories, sending rules, pauses, sender domains and provider accounts."""

import re
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.validators import MinValueValidator
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextInputWidget

from messaging import pausing, policy, providers
from messaging.admin.account_form import MAIN, SECRET_FIELDS, AccountForm, setting_name
from messaging.models import Category, Pause, ProviderAccount, SenderDomain, SendingRules
from messaging.providers.base import Content, Dispatch, Email, Push, Sms
from rme.core import addresses, ids
from rme.core.channels import Channel
from rme.core.transport import shared
from rme.tenants.admin_base import OWNERS, TenantAdmin, TenantForm


class PolicyAdmin(TenantAdmin):
    """Base: what sending has read of an organization is read anew after a change."""

    list_select_related: Any = ("organization",)

    def changed(self, organization_id: str) -> None:
        """Let sending know. Other processes read it anew within two seconds."""
        policy.forget(organization_id)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self.changed(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        self.changed(obj.organization_id)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        organizations = set(queryset.values_list("organization_id", flat=True))
        super().delete_queryset(request, queryset)
        for organization_id in organizations:
            self.changed(organization_id)


@admin.register(Category)
class CategoryAdmin(PolicyAdmin):
    list_display = ("name", "regime", "on_unknown", "expires_after", "cap_count", "organization")
    list_filter = ("regime", "on_unknown")
    search_fields = ("name",)
    fixed_fields = ("organization", "name")  # templates, consent and messages hold the name


class SendingRulesForm(TenantForm):
    """Ceilings are of one at least: what stops sending is a pause, which keeps what waits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("sends_per_second", "sends_per_day"):
            if name in self.fields:
                self.fields[name].validators.append(MinValueValidator(1))

    def clean_quiet_hours(self) -> dict[str, Any]:
        """Take periods by channel, each with two times of day that differ."""
        given = self.cleaned_data["quiet_hours"] or {}
        if not isinstance(given, dict) or not all(map(_is_period, given.values())):
            raise forms.ValidationError('Like {"SMS": {"from": "21:00", "until": "08:00"}}.')
        if unknown := sorted(set(given) - set(Channel)):
            raise forms.ValidationError(f"There is no channel {unknown[0]}.")
        return given


def _is_period(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"from", "until"}:
        return False
    times = [str(value["from"]), str(value["until"])]
    return times[0] != times[1] and all(re.fullmatch(TIME, time) for time in times)


TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"


@admin.register(SendingRules)
class SendingRulesAdmin(PolicyAdmin):
    writers: ClassVar[frozenset[str]] = OWNERS
    form = SendingRulesForm
    list_display = ("organization", "sends_per_second", "sends_per_day", "double_opt_in")


class PauseForm(TenantForm):
    """A pause of a category that does not exist would stop nothing."""

    def clean(self) -> dict[str, Any]:
        """Find the category."""
        given = super().clean()
        organization, category = self.own_organization(), given.get("category")
        if organization and category and category not in policy.of(organization.pk).categories:
            self.add_error("category", "There is no such category.")
        return given


@admin.register(Pause)
class PauseAdmin(PolicyAdmin):
    form = PauseForm
    list_display = ("__str__", "channel", "category", "template", "reason", "ends_at", "created_at")
    list_filter = ("channel",)
    search_fields = ("reason", "template", "category")

    def changed(self, organization_id: str) -> None:
        super().changed(organization_id)
        pausing.resume(organization_id)


@admin.register(SenderDomain)
class SenderDomainAdmin(PolicyAdmin):
    writers: ClassVar[frozenset[str]] = OWNERS
    list_display = ("domain", "local_part", "name", "is_default", "verified_at", "organization")
    list_filter = (("verified_at", admin.EmptyFieldListFilter),)
    search_fields = ("domain",)
    readonly_fields = ("verified_at",)
    fixed_fields = ("organization", "domain")  # another domain is not what was verified
    actions: ClassVar[list[str]] = ["mark_verified"]

    def has_verify_permission(self, request: HttpRequest) -> bool:
        # An owner's own word would let it write in the name of any domain.
        return bool(request.user.is_superuser)

    @admin.action(description="Mark as verified", permissions=["verify"])
    def mark_verified(self, request: HttpRequest, queryset: QuerySet[SenderDomain]) -> None:
        """Take the word of who runs the deployment that the domain's DNS records are in place."""
        for row in queryset:
            SenderDomain.objects.filter(pk=row.pk).update(verified_at=Now())
            self.changed(row.organization_id)
            self.note(request, row, "Marked as verified")


@admin.register(ProviderAccount)
class ProviderAccountAdmin(PolicyAdmin):
    writers: ClassVar[frozenset[str]] = OWNERS
    form = AccountForm
    list_display = ("name", "kind", "channel", "priority", "weight", "state", "organization")
    list_filter = ("channel", "kind", "state")
    search_fields = ("name",)
    readonly_fields = ("public_id",)
    actions: ClassVar[list[str]] = ["pause", "activate"]
    actions_detail: ClassVar[list[str]] = ["test_send"]
    secret_fields: ClassVar[frozenset[str]] = SECRET_FIELDS
    # The theme shows a field while its expression holds: those of the chosen kind. An account that
    # is there has no choice of kind, and the page has only its fields.
    conditional_fields: ClassVar[dict[str, str]] = {
        setting_name(kind, name): f"typeof kind === 'undefined' || kind === '{kind}'"
        for kind, provider in providers.REGISTRY.items()
        for name in provider.Settings.model_fields
    }

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        main = [(None, {"fields": (*MAIN, "public_id")})]
        if obj and not self.has_change_permission(request, obj):
            return main  # the settings are fields of the form, which a reader does not have
        return main + [
            (
                f"{provider.label}: settings",
                {"fields": [setting_name(kind, name) for name in provider.Settings.model_fields]},
            )
            for kind, provider in providers.REGISTRY.items()
            if provider.Settings.model_fields and (obj is None or obj.kind == kind)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_readonly_fields(request, obj)
        return (*shown, "kind", "channel") if obj else shown

    def _set_state(self, request: HttpRequest, queryset: QuerySet[Any], state: str) -> None:
        for row in queryset:
            if not self.has_change_permission(request, row):
                continue  # an owner here may be a mere reader there
            ProviderAccount.objects.filter(pk=row.pk).update(state=state)
            self.changed(row.organization_id)
            self.note(request, row, f"State: {row.state} → {state}")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[ProviderAccount]) -> None:
        """Let accounts take nothing."""
        self._set_state(request, queryset, ProviderAccount.State.PAUSED)

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, queryset: QuerySet[ProviderAccount]) -> None:
        """Let accounts take messages again."""
        self._set_state(request, queryset, ProviderAccount.State.ACTIVE)

    @action(description="Test send", url_path="test-send", permissions=["change"])
    def test_send(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send one message by this account alone, and show what the provider answered."""
        row = self.get_object(request, object_id)
        form = TestForm(request.POST or None, channel=row.channel)
        result = ""
        if form.is_valid():
            result = test_send(row, form.cleaned_data["to"])
            self.note(request, row, f"Test send: {result}")
        question = f"Send a test by {row.name}. No message is recorded."
        context = {"title": "Test send", "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)


class TestForm(forms.Form):
    """Where a test goes: checked like any recipient."""

    __test__ = False  # pytest: this is no test
    to = forms.CharField(label="To", max_length=4096, widget=UnfoldAdminTextInputWidget)

    def __init__(self, *args: Any, channel: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.channel = channel
        told = {"EMAIL": "An email address.", "SMS": "A number like +41791234567."}
        self.fields["to"].help_text = told.get(channel, "A device's token.")

    def clean_to(self) -> str:
        """Fold the address."""
        typed: str = self.cleaned_data["to"]
        checks = {"EMAIL": addresses.email, "SMS": lambda text: addresses.phone(text, None)}
        folded = checks[self.channel](typed) if self.channel in checks else typed
        if folded is None:
            raise forms.ValidationError("This is no address of that channel.")
        return folded


def test_send(account: ProviderAccount, to: str) -> str:
    """Send a test message by one account; gives the outcome in words."""
    ready = policy.account_of(account)
    if ready.provider is None:
        return "The account's settings are broken."
    content = _test_content(account, to)
    (outcome,) = ready.provider.send([Dispatch(ids.new_id(), content)], shared())
    reason = getattr(outcome, "reason", "")
    return f"{type(outcome).__name__}{': ' if reason else ''}{reason}"


def _test_content(account: ProviderAccount, to: str) -> Content:
    text = f"This is a test of the account {account.name}."
    match account.channel:
        case "SMS":
            return Sms(to=to, text=text)
        case "PUSH":
            return Push(token=to, platform="ANDROID", title="Test", body=text)
    verified = policy.of(account.organization_id).default_domain
    domain = verified.domain if verified else "localhost.localdomain"
    return Email(
        to=to,
        from_address=f"{verified.local_part if verified else 'no-reply'}@{domain}",
        from_name=account.organization.name,
        subject="Test",
        text=text,
        message_id=f"{ids.new_text_id()}@{domain}",
    )
