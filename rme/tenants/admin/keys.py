"""Admin pages for API keys."""

from ipaddress import ip_network
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from rme.tenants import audit
from rme.tenants.admin.actions import action
from rme.tenants.admin.programs import ProgramAdmin, ProgramForm, RequestWithSecret
from rme.tenants.models import ApiKey, User
from rme.tenants.oauth import api_keys
from rme.tenants.oauth.permissions import action_rights


class NetworksField(forms.CharField):
    """Networks (CIDR) or addresses, separated by spaces, commas or line ends."""

    def prepare_value(self, value: object) -> object:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: object) -> list[str]:  # type: ignore[override]  # typed as texts
        """Return the networks as text. Raise ValidationError for an invalid one."""
        networks = []
        for text in str(value or "").replace(",", " ").split():
            try:
                networks.append(str(ip_network(text)))
            except ValueError as error:
                raise forms.ValidationError(
                    gettext("Not a network: %(error)s.") % {"error": error}
                ) from error
        return networks

    def has_changed(self, initial: object, data: object) -> bool:
        try:
            return self.to_python(data) != (initial or [])
        except forms.ValidationError:
            return True


class ApiKeyForm(ProgramForm):
    """A form that checks restrictions, since an invalid one would reject every call."""

    networks = NetworksField(
        label=_("Networks"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("Networks that may use the key, one per line, like 192.0.2.0/24. Empty: all."),
    )

    def clean_actions(self) -> list[str]:
        """Return the actions. Raise ValidationError unless they are a list of names."""
        actions = self.cleaned_data["actions"] or []
        if not isinstance(actions, list) or not all(isinstance(name, str) for name in actions):
            raise forms.ValidationError(gettext('A list of actions, like ["Confirm_Contact"].'))
        return actions

    def clean(self) -> dict[str, Any]:
        """Refuse actions that the person's own role doesn't include."""
        cleaned = super().clean()
        self.require_rights("actions", action_rights(cleaned.get("actions") or ()))
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(ProgramAdmin):
    form = ApiKeyForm
    list_display = ("name", "organization", "shown", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("name", "public_id")
    fields = (
        *("organization", "name", "shown", "actions", "networks", "expires_at"),
        *("made_by", "last_used_at", "revoked_at"),
    )
    readonly_fields = ("shown", "made_by", "last_used_at", "revoked_at")
    actions_detail: ClassVar[list[str]] = ["rotate", "revoke", "confirm"]

    @admin.display(description=_("key"))
    def shown(self, row: ApiKey) -> str:
        return f"rme_{row.public_id}_…" if row.public_id else gettext("shown once, after saving")

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        maker = cast(User, request.user).person
        if change:
            if "actions" in form.changed_data:
                obj.maker = maker
            super().save_model(request, obj, form, change)
            return
        key, text = api_keys.issue(
            obj.organization,
            obj.name,
            actions=obj.actions,
            networks=obj.networks,
            expires_at=obj.expires_at,
            maker=maker,
        )
        obj.__dict__.update(key.__dict__)
        cast(RequestWithSecret, request).new_secret = text

    def response_add(self, request: HttpRequest, obj: ApiKey, *_: object) -> HttpResponse:
        secret = cast(RequestWithSecret, request).new_secret
        return self.show_once(request, obj, (gettext("API key"), secret))

    @action(description=_("Rotate"), permissions=["change"])
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Issue a key with the same restrictions after confirmation; the old one expires later."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            question = gettext(
                "Issue a new key like %(name)s? The current one works for %(days)s more days."
            ) % {"name": row.name, "days": api_keys.OVERLAP.days}
            return self.ask(request, gettext("Rotate"), question)
        new_key, text = api_keys.rotate(row, cast(User, request.user).person)
        self.note(request, row, f"{new_key} takes its place", audit.Action.KEY_ROTATED)
        self.note(request, new_key, f"in place of {row}", audit.Action.KEY_CREATED)
        return self.show_once(request, new_key, (gettext("API key"), text))

    @action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke the key, after confirmation."""
        row = self.get_object(request, object_id)
        if request.method != "POST":
            return self.ask(
                request,
                gettext("Revoke"),
                gettext("Revoke %(name)s? It stops working at once.") % {"name": row.name},
            )
        api_keys.revoke(row)
        self.note(request, row, "", audit.Action.KEY_REVOKED)
        messages.success(request, gettext("%(name)s is revoked.") % {"name": row.name})
        return HttpResponseRedirect(reverse("admin:tenants_apikey_change", args=[row.pk]))
