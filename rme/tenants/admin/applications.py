"""Admin pages for OAuth applications."""

import re
from datetime import datetime, timedelta
from typing import Any, ClassVar, cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from oauth2_provider import models as toolkit
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
)

from rme.core.db.clock import iso
from rme.tenants import audit
from rme.tenants.access.roles import organizations_of
from rme.tenants.admin.actions import action
from rme.tenants.admin.base import TenantInline
from rme.tenants.admin.programs import ProgramAdmin, ProgramForm, RequestWithSecret
from rme.tenants.audit import request_log
from rme.tenants.models import (
    ANY_CATEGORY,
    INTEGRATION_GROUP,
    Application,
    ApplicationKey,
    Membership,
    RequestLogEntry,
    User,
)
from rme.tenants.oauth import applications, makers
from rme.tenants.oauth.permissions import ALL_PERMISSIONS, Grants

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


FORMER_VALID = _(
    "The former secret still works. Go back and press End the former secret first, or end both at "
    "once here."
)


class NewSecretForm(forms.Form):
    """How long the present secret is accepted beside the new one."""

    ends = forms.TypedChoiceField(
        label=_("The current secret expires"),
        choices=[
            ("24", _("In 24 hours")),
            ("1", _("In an hour")),
            ("168", _("In 7 days")),
            ("0", _("At once, with all access tokens")),
        ],
        coerce=lambda hours: timedelta(hours=int(hours)),
        widget=UnfoldAdminSelectWidget(),
    )


class ApplicationKeyInline(TenantInline):
    model = ApplicationKey


class ApplicationForm(ProgramForm):
    """An application with its permissions."""

    permissions = forms.MultipleChoiceField(
        choices=Application.Permission.choices,
        required=False,
        label=_("Permissions"),
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text=_("Permissions besides sending. You can only grant what your role includes."),
    )

    def clean_send_categories(self) -> list[str]:
        """Return the categories. Raise ValidationError for an invalid name."""
        names = [each.strip().upper() for each in self.cleaned_data["send_categories"]]
        for name in names:
            if name != ANY_CATEGORY and not _CATEGORY.fullmatch(name):
                raise forms.ValidationError(
                    gettext("%(name)s is not a category. Write %(categories)s.")
                    % {"name": name, "categories": _CATEGORIES}
                )
        return [ANY_CATEGORY] if ANY_CATEGORY in names else sorted(set(names))

    def clean_user(self) -> User | None:
        """Refuse a user who serves another organization; a stored application keeps its user."""
        user: User | None = self.cleaned_data["user"] or self.instance.user
        organization = self.own_organization()
        if user and organization and "user" in self.changed_data:
            others = Application.objects.filter(user=user).exclude(organization=organization)
            if others.exists():
                raise forms.ValidationError(
                    gettext(
                        "This user runs applications of another organization. Leave the field "
                        "empty for a user of its own."
                    )
                )
        return user

    def clean(self) -> dict[str, Any]:
        """Refuse permissions that the person's own role doesn't include."""
        cleaned = super().clean()
        is_test = cleaned.get("mode", self.instance.mode) == Application.Mode.TEST
        permissions = Grants.of(cleaned.get("permissions", ()), ())
        sending = Grants.of((), cleaned.get("send_categories", ()))
        self.require_rights("permissions", permissions.rights(test=is_test))
        self.require_rights("send_categories", sending.rights(test=is_test))
        return cleaned


_CATEGORY = re.compile("[A-Z][A-Z0-9_]{0,63}")
_CATEGORIES = _("names like TRANSACTIONAL, MARKETING, or * for all")


@admin.register(Application)
class ApplicationAdmin(ProgramAdmin):
    form = ApplicationForm
    waits = True
    list_display = ("name", "organization", "mode", "client_id", "user", "secret_used_at")
    list_filter = ("mode",)
    list_select_related = ("organization", "user")
    search_fields = ("name", "client_id")
    readonly_fields = (
        *("made_by", "client_id", "created", "secret_used_at", "former_until"),
        *("former_used_at", "key_used_at"),
    )
    fields = (
        *("organization", "name", "user", "mode", "permissions", "send_categories"),
        *readonly_fields,
    )
    inlines: ClassVar[list[Any]] = [ApplicationKeyInline]
    actions_detail: ClassVar[list[str]] = ["rotate", "end_former", "confirm"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, object]:
        """Return initial data with every permission that the person may grant."""
        initial = super().get_changeform_initial_data(request)
        organization, user = str(initial.get("organization", "")), cast(User, request.user)
        grants = makers.grantable(user, organization)
        initial["permissions"] = [each for each in ALL_PERMISSIONS if each in grants.permissions]
        initial["send_categories"] = sorted(grants.categories)
        return initial

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields; to those who only look, the permissions are shown in words."""
        fields = super().get_fields(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fields
        return ["permissions_in_words" if name == "permissions" else name for name in fields]

    @admin.display(description=_("permissions"))
    def permissions_in_words(self, row: Application) -> str:
        """Return the labels of an application's permissions."""
        labels = dict(Application.Permission.choices)
        return "; ".join(str(labels.get(each, each)) for each in row.permissions)

    def get_inlines(self, request: HttpRequest, obj: object) -> Any:
        return self.inlines if obj else []

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: object
    ) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "user":
            field.queryset = self._users(request)
            field.help_text = gettext(
                "A member of the group %(integration_group)s. Leave empty for a user of its own."
            ) % {"integration_group": INTEGRATION_GROUP}
            field.required = False
        return field

    def _users(self, request: HttpRequest) -> QuerySet[User]:
        """Return the integration users that a person may choose."""
        users = User.objects.filter(groups__name=INTEGRATION_GROUP)
        if request.user.is_superuser:
            return users
        organization_ids = organizations_of(request, self.write_permission)
        serving = Application.objects.filter(organization_id__in=organization_ids).values("user_id")
        members = Membership.objects.filter(organization_id__in=organization_ids).values("user_id")
        return users.filter(Q(pk__in=serving) | Q(pk__in=members))

    def save_model(self, request: HttpRequest, obj: Application, form: Any, change: bool) -> None:
        maker = cast(User, request.user).person
        if change:
            if not {"permissions", "send_categories", "mode"}.isdisjoint(form.changed_data):
                obj.maker = maker
            super().save_model(request, obj, form, change)
            return
        grants = Grants.of(obj.permissions, obj.send_categories)
        if obj.user is None:
            obj.user = applications.integration_user(obj.organization, obj.name)
        application, secret = applications.create_application(
            obj.organization, obj.name, obj.user, obj.mode, grants=grants, maker=maker
        )
        obj.__dict__.update(application.__dict__)
        cast(RequestWithSecret, request).new_secret = secret

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
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
                request,
                gettext("A key was removed. %(revocation)s")
                % {"revocation": applications.REVOCATION},
                messages.WARNING,
            )

    def first_request(self, row: Any, since: datetime | None) -> RequestLogEntry | None:
        return request_log.first(row.organization_id, row.pk, since or row.created)

    def response_add(self, request: HttpRequest, obj: Application, *_: object) -> HttpResponse:
        secret = cast(RequestWithSecret, request).new_secret
        return self.show_once(
            request, obj, (gettext("Client id"), obj.client_id), (gettext("Secret"), secret)
        )

    @action(description=_("New secret"), permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set a new secret, beside which the present one is accepted for a time that is chosen."""
        row = self.get_object(request, object_id)
        form = NewSecretForm(request.POST or None, initial={"ends": "24"})
        if form.is_valid():
            overlap = form.cleaned_data["ends"]
            try:
                secret = applications.rotate_secret(row, overlap)
                makers.confirm(row, cast(User, request.user))
            except applications.FormerSecretValid:
                form.add_error("ends", FORMER_VALID)
            else:
                hours = int(overlap / timedelta(hours=1))
                text = (
                    f"new secret; the former one ends in {hours} hours" if hours else "new secret"
                )
                self.note(request, row, text, audit.Action.KEY_ROTATED)
                return self.show_once(
                    request, row, (gettext("Client id"), row.client_id), (gettext("Secret"), secret)
                )
        question = gettext(
            "Create a new secret for %(name)s? Existing tokens stop working when the current "
            "secret expires. At once means: %(revocation)s"
        ) % {"name": row.name, "revocation": applications.REVOCATION}
        return self.show(
            request, "ask", row, title=gettext("New secret"), question=question, form=form
        )

    @action(description=_("End the former secret"), permissions=["revoke"])
    def end_former(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End the secret that was replaced, after confirmation, and with it all access tokens."""
        row = self.get_object(request, object_id)
        if row.former_until is None:
            messages.info(request, gettext("There is no former secret. Only the newest one works."))
            return HttpResponseRedirect(reverse("admin:tenants_application_change", args=[row.pk]))
        if request.method != "POST":
            used = (
                gettext("last used %(time)s") % {"time": iso(row.former_used_at)}
                if row.former_used_at
                else gettext("never used")
            )
            question = gettext(
                "End the former secret of %(name)s now (%(used)s)? %(revocation)s"
            ) % {"name": row.name, "used": used, "revocation": applications.REVOCATION}
            return self.ask(request, gettext("End the former secret"), question)
        applications.end_former_secret(row)
        self.note(request, row, "former secret", audit.Action.KEY_REVOKED)
        messages.success(request, gettext("The former secret has ended."))
        return HttpResponseRedirect(reverse("admin:tenants_application_change", args=[row.pk]))
