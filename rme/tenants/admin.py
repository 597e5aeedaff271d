"""Pages for organizations, people, OAuth applications and API keys."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from oauth2_provider import models as toolkit
from unfold.admin import TabularInline
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from rme.tenants import api_keys, applications
from rme.tenants.admin_base import DeploymentAdmin, OwnerAdmin
from rme.tenants.models import (
    ApiKey,
    Application,
    ApplicationKey,
    Membership,
    Organization,
    User,
)

# The toolkit registers pages of its own; tokens are nobody's to look at.
for model in (
    toolkit.AccessToken,
    toolkit.RefreshToken,
    toolkit.Grant,
    toolkit.IDToken,
    toolkit.get_device_grant_model(),
    Application,
    Group,
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


def show_once(request: HttpRequest, title: str, pairs: list[tuple[str, str]]) -> HttpResponse:
    """Show secrets on the one page that ever has them."""
    context = {**admin.site.each_context(request), "title": title, "pairs": pairs}
    response = render(request, "admin/rme/secret.html", context)
    response["Cache-Control"] = "no-store"
    return response


class MembershipInline(TabularInline):  # type: ignore[misc]
    model = Membership
    extra = 0


@admin.register(Organization)
class OrganizationAdmin(OwnerAdmin):
    organization_path: ClassVar[str] = "pk"
    list_display = ("name", "id", "zone", "language", "region", "is_active", "created_at")
    search_fields = ("id", "name")
    list_filter = ("is_active",)
    inlines: ClassVar[list[Any]] = [MembershipInline]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("id", "created_at") if obj else ("created_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(Membership)
class MembershipAdmin(OwnerAdmin):
    list_display = ("user", "organization", "role")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__username", "organization__name")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "user":
            field.queryset = User.objects.filter(is_staff=True)
        return field


@admin.register(User)
class UserAdmin(DeploymentAdmin, DjangoUserAdmin):  # type: ignore[misc]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    organization_path: ClassVar[str] = "memberships__organization_id"
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    secret_fields: ClassVar[frozenset[str]] = frozenset({"password", "password1", "password2"})


@admin.register(Group)
class GroupAdmin(DeploymentAdmin, DjangoGroupAdmin):  # type: ignore[misc]
    """Permission sets; `MSG_Integration_User` is the one that programs need."""


class ApplicationKeyInline(TabularInline):  # type: ignore[misc]
    model = ApplicationKey
    extra = 0


@admin.register(Application)
class ApplicationAdmin(OwnerAdmin):
    list_display = ("name", "organization", "mode", "client_id", "user", "created")
    list_filter = ("mode",)
    list_select_related = ("organization", "user")
    search_fields = ("name", "client_id")
    fields = ("organization", "name", "user", "mode", "client_id", "created")
    readonly_fields = ("client_id", "created")
    inlines: ClassVar[list[Any]] = [ApplicationKeyInline]
    actions_detail: ClassVar[list[str]] = ["rotate"]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "user":
            field.queryset = User.objects.filter(groups__name="MSG_Integration_User")
            field.help_text = "The integration user: a member of the group MSG_Integration_User."
            field.required = True
        return field

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
        request._secret = secret  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: Application, *args: Any) -> HttpResponse:
        pairs = [("Client id", obj.client_id), ("Client secret", request._secret)]  # type: ignore[attr-defined]
        return show_once(request, f"Application {obj.name}", pairs)

    @action(description="New secret", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Give the application a new secret, after asking; the old one stops at once."""
        row = self.get_object(request, object_id)
        if row is None or not self.has_change_permission(request, row):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if request.method != "POST":
            question = f"Give {row.name} a new secret? The present one stops working at once."
            return self.ask(request, "New secret", question)
        secret = applications.rotate_secret(row)
        self.note(request, row, "New secret")
        return show_once(
            request, f"Application {row.name}", [("Client id", row.client_id), ("Secret", secret)]
        )


@admin.register(ApiKey)
class ApiKeyAdmin(OwnerAdmin):
    list_display = ("name", "organization", "shown", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("name", "public_id")
    fields = ("organization", "name", "shown", "actions", "networks", "expires_at", "revoked_at")
    readonly_fields = ("shown", "revoked_at")
    actions_detail: ClassVar[list[str]] = ["revoke"]

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
        request._secret = text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, *args: Any) -> HttpResponse:
        return show_once(request, f"API key {obj.name}", [("API key", request._secret)])  # type: ignore[attr-defined]

    @action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke the key, after asking."""
        row = self.get_object(request, object_id)
        if row is None or not self.has_change_permission(request, row):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if request.method != "POST":
            return self.ask(request, "Revoke", f"Revoke {row.name}? It stops working at once.")
        ApiKey.objects.filter(pk=row.pk).update(revoked_at=Now())
        self.note(request, row, "Revoked")
        messages.success(request, f"{row.name} is revoked.")
        return HttpResponseRedirect("../../")
