"""Pages for organizations, people, OAuth applications and API keys, and the log of changes."""

from ipaddress import ip_network
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from oauth2_provider import models as toolkit
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from rme.tenants import api_keys, applications, changes
from rme.tenants.admin_base import (
    DeploymentAdmin,
    OwnerAdmin,
    ReadOnly,
    TenantForm,
    TenantInline,
    organizations_of,
)
from rme.tenants.models import (
    INTEGRATION_GROUP,
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


def show_once(page: Any, request: HttpRequest, row: Any, *pairs: tuple[str, str]) -> HttpResponse:
    """Show secrets on the one page that ever has them."""
    response: HttpResponse = page.show(request, "secret", row, title=str(row), pairs=pairs)
    response["Cache-Control"] = "no-store"
    return response


class MembershipForm(TenantForm):
    """A person is named, not chosen: a list would tell who works for other organizations."""

    user = forms.ModelChoiceField(
        User.objects.filter(is_staff=True),
        to_field_name="username",
        widget=UnfoldAdminTextInputWidget,
        help_text="The user name of a person who may log in here.",
        error_messages={"invalid_choice": "Nobody of this name may log in here."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "user" in self.fields:
            self.initial["user"] = self.instance.user
            self.fields["user"].disabled = True


class MembershipInline(TenantInline):
    model = Membership
    form = MembershipForm
    fields = ("user", "role")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user")


class OrganizationsInline(TenantInline):
    """The organizations of a user."""

    model = Membership
    fields = ("organization", "role")


DEPLOYMENTS_OWN = ("is_active", "calls_per_second", "calls_per_day")


@admin.register(Organization)
class OrganizationAdmin(OwnerAdmin):
    organization_path: ClassVar[str] = "pk"
    list_display = ("name", "id", "zone", "language", "region", "is_active", "created_at")
    search_fields = ("id", "name")
    list_filter = ("is_active",)
    inlines: ClassVar[list[Any]] = [MembershipInline]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("created_at",)
        # What the deployment switched off or limited, an owner cannot change back.
        return ("id", "created_at", *(() if request.user.is_superuser else DEPLOYMENTS_OWN))

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else []

    def get_list_filter(self, request: HttpRequest) -> Any:
        return self.list_filter

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(Membership)
class MembershipAdmin(OwnerAdmin):
    form = MembershipForm
    fields = ("organization", "user", "role")
    list_display = ("user", "organization", "role")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__username", "organization__name")


@admin.register(User)
class UserAdmin(DeploymentAdmin, DjangoUserAdmin):  # type: ignore[misc]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    organization_path: ClassVar[str] = "memberships__organization_id"
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    inlines: ClassVar[list[Any]] = [OrganizationsInline]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else []


@admin.register(Group)
class GroupAdmin(DeploymentAdmin, DjangoGroupAdmin):  # type: ignore[misc]
    """Permission sets; `MSG_Integration_User` is the one that programs need."""

    form = ModelForm


class ApplicationKeyInline(TenantInline):
    model = ApplicationKey


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
            field.queryset = self._users(request)
            field.help_text = f"The integration user: a member of the group {INTEGRATION_GROUP}."
            field.required = True
        return field

    def _users(self, request: HttpRequest) -> QuerySet[User]:
        """Give the integration users that a person may know of."""
        users = User.objects.filter(groups__name=INTEGRATION_GROUP)
        if request.user.is_superuser:
            return users
        own = organizations_of(request, self.writers)
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
        request._secret = secret  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: Application, *_: Any) -> HttpResponse:
        secret: str = request._secret  # type: ignore[attr-defined]
        return show_once(self, request, obj, ("Client id", obj.client_id), ("Secret", secret))

    @action(description="New secret", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Give the application a new secret, after asking; the old one stops at once."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            question = f"Give {row.name} a new secret? The present one stops working at once."
            return self.ask(request, "New secret", question)
        secret = applications.rotate_secret(row)
        self.note(request, row, "New secret")
        return show_once(self, request, row, ("Client id", row.client_id), ("Secret", secret))


class NetworksField(forms.CharField):
    """Networks (CIDR) or single addresses, between spaces, commas or line ends."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        """Read what was typed. Raises ValidationError, which names what is none."""
        found = []
        for text in str(value or "").replace(",", " ").split():
            try:
                found.append(str(ip_network(text)))
            except ValueError as error:
                raise forms.ValidationError(f"Not a network: {error}.") from error
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return self.to_python(data) != (initial or [])
        except forms.ValidationError:
            return True


class ApiKeyForm(TenantForm):
    """Restrictions are checked here: one that cannot be read would refuse every call."""

    networks = NetworksField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="From where the key may come, a line each, like 192.0.2.0/24; none: everywhere.",
    )

    def clean_actions(self) -> list[str]:
        """Take a list of names."""
        given = self.cleaned_data["actions"] or []
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise forms.ValidationError('A list of actions, like ["Confirm_Contact"].')
        return given


@admin.register(ApiKey)
class ApiKeyAdmin(OwnerAdmin):
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
        request._secret = text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, *_: Any) -> HttpResponse:
        secret: str = request._secret  # type: ignore[attr-defined]
        return show_once(self, request, obj, ("API key", secret))

    @action(description="Rotate", permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Issue a key that may do the same, after asking; the old one goes on for a while."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            question = f"Issue a new key like {row.name}? The present one goes on for "
            return self.ask(request, "Rotate", f"{question}{api_keys.OVERLAP.days} days.")
        made, text = api_keys.rotate(row)
        self.note(request, row, f"Rotated: {made} takes its place")
        return show_once(self, request, made, ("API key", text))

    @action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke the key, after asking."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            return self.ask(request, "Revoke", f"Revoke {row.name}? It stops working at once.")
        api_keys.revoke(row)
        self.note(request, row, "Revoked")
        messages.success(request, f"{row.name} is revoked.")
        return HttpResponseRedirect(reverse("admin:tenants_apikey_change", args=[row.pk]))


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly, DeploymentAdmin):
    """Who changed what, and from what to what."""

    list_display = ("action_time", "user", "content_type", "object_repr", "action_flag", "told")
    list_filter = ("action_flag",)
    list_select_related = ("user", "content_type")
    search_fields = ("object_id", "object_repr", "user__username")
    ordering = ("-id",)
    paginator = InfinitePaginator
    fields = ("action_time", "user", "content_type", "object_id", "object_repr", "told")

    @admin.display(description="changes")
    def told(self, row: LogEntry) -> str:
        lines = changes.tell(row) or [row.get_change_message()]
        return format_html_join("", "<div>{}</div>", ((line,) for line in lines))
