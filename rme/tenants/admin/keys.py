"""Admin pages for OAuth applications and API keys."""

from ipaddress import ip_network
from typing import Any, ClassVar, cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from oauth2_provider import models as toolkit
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from rme.tenants import api_keys, applications, audit
from rme.tenants.admin.base import TenantInline
from rme.tenants.admin.choices import TenantForm
from rme.tenants.admin.shown_once import ShownOnce
from rme.tenants.models import (
    INTEGRATION_GROUP,
    ApiKey,
    Application,
    ApplicationKey,
    Membership,
    User,
)
from rme.tenants.roles import Permission, organizations_of

# The toolkit and allauth register pages of their own; no page may show tokens.
for model in (
    toolkit.AccessToken,
    toolkit.RefreshToken,
    toolkit.Grant,
    toolkit.IDToken,
    toolkit.get_device_grant_model(),
    EmailAddress,
    Authenticator,
    UserSession,
    SocialAccount,
    SocialApp,
    SocialToken,
    Application,
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class _RequestWithSecret(HttpRequest):
    """A request that has created a secret, which its response shows once."""

    _secret: str


class ApplicationKeyInline(TenantInline):
    model = ApplicationKey


@admin.register(Application)
class ApplicationAdmin(ShownOnce):
    read_permission: Permission = Permission.CHANGE_KEYS
    write_permission: Permission = Permission.CHANGE_KEYS
    list_display = ("name", "organization", "mode", "client_id", "user", "created")
    list_filter = ("mode",)
    list_select_related = ("organization", "user")
    search_fields = ("name", "client_id")
    fields = ("organization", "name", "user", "mode", "client_id", "created")
    readonly_fields = ("client_id", "created")
    inlines: ClassVar[list[Any]] = [ApplicationKeyInline]
    actions_detail: ClassVar[list[str]] = ["rotate"]

    def get_inlines(self, request: HttpRequest, obj: object) -> Any:
        return self.inlines if obj else []

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: object
    ) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "user":
            field.queryset = self._users(request)
            field.help_text = f"The integration user: a member of the group {INTEGRATION_GROUP}."
            field.required = True
        return field

    def _users(self, request: HttpRequest) -> QuerySet[User]:
        """Return the integration users that a person may choose."""
        users = User.objects.filter(groups__name=INTEGRATION_GROUP)
        if request.user.is_superuser:
            return users
        own = organizations_of(request, self.write_permission)
        serving = Application.objects.filter(organization_id__in=own).values("user_id")
        members = Membership.objects.filter(organization_id__in=own).values("user_id")
        return users.filter(Q(pk__in=serving) | Q(pk__in=members))

    def save_model(
        self, request: HttpRequest, obj: Application, form: ModelForm, change: bool
    ) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, secret = applications.create_application(
            obj.organization, obj.name, obj.user, obj.mode
        )
        obj.__dict__.update(made.__dict__)
        cast(_RequestWithSecret, request)._secret = secret

    def save_formset(
        self, request: HttpRequest, form: ModelForm, formset: Any, change: bool
    ) -> None:
        """Save the keys, and revoke all tokens if a key was deleted or replaced."""
        super().save_formset(request, form, formset, change)
        # Compared without white space, since browsers change line ends.
        replaced = any(
            "material" in each.changed_data
            and each.initial["material"].split() != each.cleaned_data["material"].split()
            for each in formset.initial_forms
        )
        if formset.deleted_objects or replaced:
            applications.revoke_tokens(form.instance)
            self.message_user(
                request, f"A key is gone. {applications.REVOCATION}", messages.WARNING
            )

    def response_add(self, request: HttpRequest, obj: Application, *_: object) -> HttpResponse:
        secret = cast(_RequestWithSecret, request)._secret
        return self.show_once(request, obj, ("Client id", obj.client_id), ("Secret", secret))

    @action(description="New secret", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set a new secret after confirmation; the old one and all tokens become invalid."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            question = f"Give {row.name} a new secret? {applications.ROTATION}"
            return self.ask(request, "New secret", question)
        secret = applications.rotate_secret(row)
        self.note(request, row, "new secret", audit.Action.KEY_ROTATED)
        return self.show_once(request, row, ("Client id", row.client_id), ("Secret", secret))


class NetworksField(forms.CharField):
    """Networks (CIDR) or addresses, separated by spaces, commas or line ends."""

    def prepare_value(self, value: object) -> object:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: object) -> list[str]:  # type: ignore[override]  # typed as texts
        """Return the networks as text. Raise ValidationError for an invalid one."""
        found = []
        for text in str(value or "").replace(",", " ").split():
            try:
                found.append(str(ip_network(text)))
            except ValueError as error:
                raise forms.ValidationError(f"Not a network: {error}.") from error
        return found

    def has_changed(self, initial: object, data: object) -> bool:
        try:
            return self.to_python(data) != (initial or [])
        except forms.ValidationError:
            return True


class ApiKeyForm(TenantForm):
    """A form that checks restrictions, since an invalid one would reject every call."""

    networks = NetworksField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="From where the key may come, a line each, like 192.0.2.0/24; none: everywhere.",
    )

    def clean_actions(self) -> list[str]:
        """Return the actions. Raise ValidationError unless they are a list of names."""
        given = self.cleaned_data["actions"] or []
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise forms.ValidationError('A list of actions, like ["Confirm_Contact"].')
        return given


@admin.register(ApiKey)
class ApiKeyAdmin(ShownOnce):
    read_permission: Permission = Permission.CHANGE_KEYS
    write_permission: Permission = Permission.CHANGE_KEYS
    form = ApiKeyForm
    list_display = ("name", "organization", "shown", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("name", "public_id")
    fields = (
        *("organization", "name", "shown", "actions", "networks", "expires_at"),
        *("last_used_at", "revoked_at"),
    )
    readonly_fields = ("shown", "last_used_at", "revoked_at")
    actions_detail: ClassVar[list[str]] = ["rotate", "revoke"]

    @admin.display(description="key")
    def shown(self, row: ApiKey) -> str:
        return f"rme_{row.public_id}_…" if row.public_id else "shown once, after saving"

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ModelForm, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, text = api_keys.issue(
            obj.organization,
            obj.name,
            actions=obj.actions,
            networks=obj.networks,
            expires_at=obj.expires_at,
        )
        obj.__dict__.update(made.__dict__)
        cast(_RequestWithSecret, request)._secret = text

    def response_add(self, request: HttpRequest, obj: ApiKey, *_: object) -> HttpResponse:
        secret = cast(_RequestWithSecret, request)._secret
        return self.show_once(request, obj, ("API key", secret))

    @action(description="Rotate", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Issue a key with the same restrictions after confirmation; the old one expires later."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            question = f"Issue a new key like {row.name}? The present one goes on for "
            return self.ask(request, "Rotate", f"{question}{api_keys.OVERLAP.days} days.")
        made, text = api_keys.rotate(row)
        self.note(request, row, f"{made} takes its place", audit.Action.KEY_ROTATED)
        self.note(request, made, f"in place of {row}", audit.Action.KEY_CREATED)
        return self.show_once(request, made, ("API key", text))

    @action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke the key, after confirmation."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            return self.ask(request, "Revoke", f"Revoke {row.name}? It stops working at once.")
        api_keys.revoke(row)
        self.note(request, row, "", audit.Action.KEY_REVOKED)
        messages.success(request, f"{row.name} is revoked.")
        return HttpResponseRedirect(reverse("admin:tenants_apikey_change", args=[row.pk]))
