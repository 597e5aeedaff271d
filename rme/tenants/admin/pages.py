"""Admin pages for organizations and people, and the log of former releases."""

from contextlib import suppress
from typing import Any, ClassVar, cast

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import MaxLengthValidator
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator

from rme.core import errors
from rme.tenants import audit
from rme.tenants.access import invitations
from rme.tenants.access.roles import grantable
from rme.tenants.admin.actions import action
from rme.tenants.admin.base import (
    DeploymentAdmin,
    OwnerAdmin,
    ReadOnly,
    TenantAdmin,
    TenantInline,
)
from rme.tenants.admin.choices import TenantForm
from rme.tenants.admin.offered import offer_settings
from rme.tenants.admin.shown_once import ShownOnce
from rme.tenants.models import Invitation, Membership, Organization, User

admin.site.unregister(Group)  # replaces Django's page by ours


class _RequestWithLink(HttpRequest):
    """A request that has created an invitation, whose link its response may show once."""

    _link: str


class MembershipInline(TenantInline):
    """The people of an organization; others come in by an invitation."""

    model = Membership
    fields = ("user", "role")
    readonly_fields = ("user",)
    hide_title = True

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request).select_related("user")
        return rows


def _to_invitation(page: TenantAdmin, request: HttpRequest) -> HttpResponse:
    """Lead to the form of an invitation who may add a row to a page."""
    if not page.has_add_permission(request):
        raise PermissionDenied
    return HttpResponseRedirect(reverse("admin:tenants_invitation_add"))


class OrganizationsInline(TenantInline):
    """The organizations of a user."""

    model = Membership
    fields = ("organization", "role")


ROLES_LINK = "admin/rme/roles_link.html"
DELETE_TRIES = 3
IN_USE = gettext_noop(
    "The organization is in use, so it wasn't deleted. Make it inactive, wait a minute, and delete "
    "it again."
)
SUPERUSER_FIELDS = ("is_active", "simulator", "calls_per_second", "calls_per_day")


class OrganizationForm(TenantForm):
    """An organization. The id of a deleted one, whose messages may still be stored, is taken."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer_settings(self)

    def clean_id(self) -> str:
        organization_id: str = self.cleaned_data["id"]
        if audit.has_entries(organization_id):
            raise ValidationError(
                gettext(
                    "A deleted organization had this id, and its records may still be stored. "
                    "Choose another id."
                )
            )
        return organization_id


@admin.register(Organization)
class OrganizationAdmin(OwnerAdmin):
    form: Any = OrganizationForm
    organization_path: ClassVar[str] = "pk"
    list_display = ("name", "id", "zone", "language", "region", "is_active", "created_at")
    search_fields = ("id", "name")
    list_filter = ("is_active",)
    inlines: ClassVar[list[Any]] = [MembershipInline]

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> object:
        if obj is None:
            return ("created_at",)
        # An owner cannot change what the deployment's administrators have disabled or limited.
        return ("id", "created_at", *(() if request.user.is_superuser else SUPERUSER_FIELDS))

    def get_inlines(self, request: HttpRequest, obj: object) -> Any:
        return self.inlines if obj else []

    def get_list_filter(self, request: HttpRequest) -> object:
        return self.list_filter

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(request.user.is_superuser)

    def delete_model(self, request: HttpRequest, obj: Organization) -> None:
        self.delete_queryset(request, Organization.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Organization]) -> None:
        """Delete organizations. Raise Unavailable if programs or workers keep adding rows to them.

        A row that is added after its table was emptied breaks a foreign key: then again from the
        start.
        """
        for _ in range(DELETE_TRIES):
            with suppress(IntegrityError), transaction.atomic():
                queryset.delete()
                connection.check_constraints()  # here, and not at the commit
                return
        raise errors.Unavailable(gettext(IN_USE))


@admin.register(Membership)
class MembershipAdmin(OwnerAdmin):
    """The roles of people. Who could name an account here would learn which there are."""

    list_before_template = change_form_outer_before_template = ROLES_LINK
    fields = ("organization", "user", "role")
    fixed_fields = ("organization", "user")
    list_display = ("user", "organization", "role")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__username", "organization__name")
    actions_detail: ClassVar[list[str]] = ["act_as"]

    @action(description=gettext_lazy("Act as this person"), url_path="act-as", permissions=["view"])
    def act_as(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the page where a person begins to act as another."""
        row = self.get_object(request, object_id)
        return HttpResponseRedirect(reverse("acting_begin", args=[row.user_id]))

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        """Lead to the invitation."""
        return _to_invitation(self, request)


class InvitationForm(TenantForm):
    """An invitation to a person who has no open one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if email := self.fields.get("email"):  # the address becomes the user name
            longest = User._meta.get_field("username").max_length or 0
            email.validators.append(MaxLengthValidator(longest))

    def clean(self) -> dict[str, Any]:
        """Check that the person has neither an open invitation nor a role already."""
        cleaned = super().clean()
        organization, email = self.own_organization(), cleaned.get("email", "")
        if organization and email and (problem := invitations.problem(organization.pk, email)):
            self.add_error("email", problem)
        return cleaned


@admin.register(Invitation)
class InvitationAdmin(ShownOnce, OwnerAdmin):
    """Invitations by email. To delete one is to withdraw it."""

    form = InvitationForm
    list_before_template = change_form_outer_before_template = ROLES_LINK
    fields = ("organization", "email", "role")
    list_display = ("email", "role", "organization", "state", "invited_by", "expires_at")
    list_filter = ("role",)
    list_select_related = ("organization", "invited_by")
    search_fields = ("email",)
    ordering = ("-id",)

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Invitation) -> str:
        if row.accepted_at:
            return gettext("accepted")
        return gettext("waiting") if row.expires_at > timezone.now() else gettext("expired")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def done_url(self, row: Model) -> str:
        """Return the address of the team, which lists the invitations."""
        return reverse("console:team", args=[self.organization_of(row)])

    def save_model(
        self, request: HttpRequest, obj: Invitation, form: "ModelForm[Any]", change: bool
    ) -> None:
        if obj.role not in grantable(request.user, obj.organization_id):
            raise PermissionDenied
        obj.invited_by = cast(User, request.user)
        cast(_RequestWithLink, request)._link = invitations.create(obj)

    def response_add(self, request: HttpRequest, obj: Invitation, *_: object) -> HttpResponse:
        if settings.MAIL_ENABLED:
            text = gettext("An email with the invitation goes to %(email)s.")
            messages.success(request, text % {"email": obj.email})
            return HttpResponseRedirect(reverse("console:team", args=[obj.organization_id]))
        link = cast(_RequestWithLink, request)._link
        return self.show_once(
            request, obj, (gettext("Link, as this deployment sends no mail"), link)
        )


@admin.register(User)
class UserAdmin(DeploymentAdmin, DjangoUserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    organization_path: ClassVar[str] = "memberships__organization_id"
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    inlines: ClassVar[list[Any]] = [OrganizationsInline]
    actions_detail: ClassVar[list[str]] = ["act_as"]

    @action(description=gettext_lazy("Act as this person"), url_path="act-as", permissions=["view"])
    def act_as(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the page where a person begins to act as another."""
        row = self.get_object(request, object_id)
        return HttpResponseRedirect(reverse("acting_begin", args=[row.pk]))

    def get_inlines(self, request: HttpRequest, obj: object) -> Any:
        return self.inlines if obj else []

    def entries_about(self, row: Any, action: audit.Action, **fields: Any) -> list[audit.NewEntry]:
        """Return what is recorded about a user, in each of the user's organizations."""
        if action is audit.Action.CHANGED and "password" in fields.get("changes", {}):
            action = audit.Action.PASSWORD_CHANGED
        return audit.about_person(row, action, **fields)

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        """Lead to the invitation: people choose their passwords themselves."""
        return _to_invitation(self, request)


@admin.register(Group)
class GroupAdmin(DeploymentAdmin, DjangoGroupAdmin):
    """Permission sets; the users of applications need `MSG_Integration_User`."""

    form = ModelForm


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly, DeploymentAdmin):
    """The log of changes of former releases; since then they are in the audit."""

    list_display = ("action_time", "user", "content_type", "object_repr", "action_flag", "changes")
    list_filter = ("action_flag",)
    list_select_related = ("user", "content_type")
    search_fields = ("object_id", "object_repr", "user__username")
    ordering = ("-id",)
    paginator = InfinitePaginator
    fields = ("action_time", "user", "content_type", "object_id", "object_repr", "changes")

    @admin.display(description=gettext_lazy("changes"))
    def changes(self, row: LogEntry) -> str:
        lines = audit.describe_log_entry(row) or [row.get_change_message()]
        return format_html_join("", "<div>{}</div>", ((line,) for line in lines))
