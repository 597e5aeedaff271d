"""Pages for categories, pauses, sender domains and provider accounts."""

from typing import Any, ClassVar

import orjson
from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from pydantic import SecretStr, ValidationError
from unfold.decorators import action

from messaging import pausing, policy, providers
from messaging.models import Category, Pause, ProviderAccount, SenderDomain
from messaging.providers.base import Dispatch, Email, Push, Sms
from rme.core import addresses, ids
from rme.core.transport import shared
from rme.tenants.admin_base import TenantAdmin


class PolicyAdmin(TenantAdmin):
    """Base: what sending has read of an organization is read anew after a change."""

    list_select_related: Any = ("organization",)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        policy.forget(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        policy.forget(obj.organization_id)


@admin.register(Category)
class CategoryAdmin(PolicyAdmin):
    list_display = ("name", "regime", "on_unknown", "expires_after", "cap_count", "organization")
    search_fields = ("name",)


@admin.register(Pause)
class PauseAdmin(PolicyAdmin):
    list_display = ("__str__", "reason", "ends_at", "organization")
    search_fields = ("reason", "template")

    def save_model(self, request: HttpRequest, obj: Pause, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        pausing.resume(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Pause) -> None:
        super().delete_model(request, obj)
        pausing.resume(obj.organization_id)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Pause]) -> None:
        organizations = set(queryset.values_list("organization_id", flat=True))
        super().delete_queryset(request, queryset)
        for organization_id in organizations:
            pausing.resume(organization_id)


@admin.register(SenderDomain)
class SenderDomainAdmin(PolicyAdmin):
    list_display = ("domain", "local_part", "name", "is_default", "verified_at", "organization")
    search_fields = ("domain",)
    readonly_fields = ("verified_at",)
    actions: ClassVar[list[str]] = ["mark_verified"]

    @admin.action(description="Mark as verified", permissions=["change"])
    def mark_verified(self, request: HttpRequest, queryset: QuerySet[SenderDomain]) -> None:
        """Take a person's word that the domain's DNS records are in place."""
        for row in queryset:
            SenderDomain.objects.filter(pk=row.pk).update(verified_at=Now())
            policy.forget(row.organization_id)
            self.note(request, row, "Marked as verified")


def setting_name(kind: str, name: str) -> str:
    return f"setting_{kind}_{name}"


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr


def _setting_fields() -> dict[str, forms.Field]:
    """Make a form field for each setting of each provider."""
    fields: dict[str, forms.Field] = {}
    for kind, provider in providers.REGISTRY.items():
        for name, info in provider.Settings.model_fields.items():
            secret = _is_secret(info.annotation)
            widget = forms.PasswordInput(render_value=False) if secret else forms.TextInput()
            helped = info.description or ("Leave empty to keep what is stored." if secret else "")
            default = "" if secret or info.is_required() else str(info.get_default() or "")
            fields[setting_name(kind, name)] = forms.CharField(
                label=name.replace("_", " "),
                required=False,
                widget=widget,
                help_text=helped,
                initial=default,
            )
    return fields


class _AccountForm(ModelForm):
    """An account with the settings of its provider, which its own schema checks."""

    class Meta:
        model = ProviderAccount
        fields = ("organization", "name", "kind", "channel", "priority", "weight", "match", "state")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self._stored()
        for name, value in stored.items():
            field = self.fields.get(setting_name(self.instance.kind, name))
            if field and not isinstance(field.widget, forms.PasswordInput):
                field.initial = value
                self.initial[setting_name(self.instance.kind, name)] = value

    def _stored(self) -> dict[str, Any]:
        return orjson.loads(self.instance.credentials or "{}") if self.instance.pk else {}

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        provider = providers.REGISTRY.get(given.get("kind", ""))
        if provider is None:
            return given
        if given.get("channel") not in provider.channels:
            self.add_error("channel", f"{provider.label} does not serve this channel.")
        kind = provider.kind
        stored = self._stored() if self.instance.kind == kind else {}
        settings = {}
        for name, info in provider.Settings.model_fields.items():
            value = given.get(setting_name(kind, name), "")
            if not value and _is_secret(info.annotation):
                value = stored.get(name, "")
            if value != "":
                settings[name] = value
        try:
            provider.Settings.model_validate(settings)
        except ValidationError as error:
            for problem in error.errors(include_input=False, include_url=False):
                name = setting_name(kind, str(problem["loc"][0])) if problem["loc"] else None
                self.add_error(name, problem["msg"])
        self.instance.credentials = orjson.dumps(settings).decode()
        return given


AccountForm = type("AccountForm", (_AccountForm,), _setting_fields())


@admin.register(ProviderAccount)
class ProviderAccountAdmin(PolicyAdmin):
    form = AccountForm
    list_display = ("name", "kind", "channel", "priority", "weight", "state", "organization")
    list_filter = ("channel", "kind", "state")
    search_fields = ("name",)
    readonly_fields = ("public_id",)
    actions: ClassVar[list[str]] = ["pause", "activate"]
    actions_detail: ClassVar[list[str]] = ["test_send"]
    secret_fields: ClassVar[frozenset[str]] = frozenset(
        setting_name(kind, name)
        for kind, provider in providers.REGISTRY.items()
        for name, info in provider.Settings.model_fields.items()
        if _is_secret(info.annotation)
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        main = (*_AccountForm.Meta.fields, "public_id")
        of_kinds = [
            (
                f"{provider.label}: settings",
                {"fields": [setting_name(kind, name) for name in provider.Settings.model_fields]},
            )
            for kind, provider in providers.REGISTRY.items()
            if provider.Settings.model_fields and (obj is None or obj.kind == kind)
        ]
        return [(None, {"fields": main}), *of_kinds]

    def _set_state(self, request: HttpRequest, queryset: QuerySet[Any], state: str) -> None:
        for row in queryset:
            ProviderAccount.objects.filter(pk=row.pk).update(state=state)
            policy.forget(row.organization_id)
            self.note(request, row, f"State {state}")

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
        if row is None or not self.has_change_permission(request, row):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        form = TestForm(request.POST or None, channel=row.channel)
        result = test_send(row, form.cleaned_data["to"]) if form.is_valid() else ""
        context = {
            **admin.site.each_context(request),
            "title": "Test send",
            "question": f"Send a test by {row.name}. Nothing is recorded.",
            "form": form,
            "result": result,
        }
        return render(request, "admin/rme/ask.html", context)


class TestForm(forms.Form):
    """Where a test goes: checked like any recipient."""

    to = forms.CharField(label="To", max_length=320)

    def __init__(self, *args: Any, channel: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.channel = channel

    def clean_to(self) -> str:
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
    domain = SenderDomain.objects.filter(organization_id=account.organization_id).first()
    name = domain.domain if domain else "localhost.localdomain"
    text = f"This is a test of the account {account.name}."
    content = {
        "EMAIL": Email(
            to=to,
            from_address=f"{domain.local_part if domain else 'no-reply'}@{name}",
            from_name=account.organization.name,
            subject="Test",
            text=text,
            message_id=f"{ids.new_text_id()}@{name}",
        ),
        "SMS": Sms(to=to, text=text),
        "PUSH": Push(token=to, platform="ANDROID", title="Test", body=text),
    }[account.channel]
    (outcome,) = ready.provider.send([Dispatch(ids.new_id(), content)], shared())
    reason = getattr(outcome, "reason", "")
    return f"{type(outcome).__name__}{': ' if reason else ''}{reason}"
