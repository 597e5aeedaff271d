"""What all admin pages share: whose rows a person sees, what its role may do, and the log."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Field, ForeignKey, Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.admin import ModelAdmin

from rme.tenants.models import Membership, Organization

Role = Membership.Role
READERS = frozenset(Role.values)
EDITORS = frozenset({Role.OWNER, Role.EDITOR})
OWNERS = frozenset({Role.OWNER})

REDACTED = "…"


def organizations_of(request: HttpRequest, roles: Iterable[str]) -> list[str]:
    """Give the organizations in which a person has one of the roles, read once a request."""
    memberships = getattr(request, "_memberships", None)
    if memberships is None:
        rows = Membership.objects.filter(user_id=request.user.pk)
        memberships = list(rows.values_list("organization_id", "role"))
        request._memberships = memberships  # type: ignore[attr-defined]
    wanted = set(roles)
    return [organization for organization, role in memberships if role in wanted]


class TenantAdmin(ModelAdmin):  # type: ignore[misc]
    """Rows of a person's own organizations, with the rights of its role there.

    What belongs to another organization answers as what does not exist. Superusers run the
    deployment and see all.
    """

    organization_path: ClassVar[str] = "organization_id"
    readers: ClassVar[frozenset[str]] = READERS
    writers: ClassVar[frozenset[str]] = EDITORS
    secret_fields: ClassVar[frozenset[str]] = frozenset()
    list_per_page = 50
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        own = organizations_of(request, self.readers)
        return rows.filter(**{f"{self.organization_path}__in": own})

    def _may(self, request: HttpRequest, roles: Iterable[str], row: Model | str | None) -> bool:
        if not request.user.is_active or not request.user.is_staff:
            return False
        if request.user.is_superuser:
            return True
        own = organizations_of(request, roles)
        if row is None:
            return bool(own)
        if isinstance(row, str):  # the theme asks for the pages of actions by id
            found = self.get_object(request, row)
            return found is not None and self.organization_of(found) in own
        return self.organization_of(row) in own

    def organization_of(self, row: Model) -> str:
        """Give the organization of a row."""
        value: Any = row
        for step in self.organization_path.split("__"):
            value = getattr(value, step)
        return str(value)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may(request, self.readers, None)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may(request, self.readers, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may(request, self.writers, None)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may(request, self.writers, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may(request, self.writers, obj)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only rows of the person's own organizations."""
        if not request.user.is_superuser:
            own = organizations_of(request, self.writers)
            model = db_field.related_model
            if model is Organization:
                kwargs["queryset"] = Organization.objects.filter(pk__in=own)
            elif _has_field(model, "organization"):
                kwargs["queryset"] = model._default_manager.filter(organization_id__in=own)
            else:
                kwargs["queryset"] = model._default_manager.none()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def construct_change_message(
        self, request: HttpRequest, form: ModelForm, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        """Log what changed, with the values before and after; secrets without theirs."""
        message: list[dict[str, Any]] = super().construct_change_message(
            request, form, formsets, add
        )
        values = {
            name: [REDACTED, REDACTED]
            if name in self.secret_fields
            else [str(form.initial.get(name, ""))[:500], str(form.cleaned_data.get(name, ""))[:500]]
            for name in form.changed_data
        }
        return [*message, {"values": values}] if values else message

    def ask(self, request: HttpRequest, title: str, question: str) -> HttpResponse:
        """Ask before something is done: only the answer, a POST, does it."""
        context = {**self.admin_site.each_context(request), "title": title, "question": question}
        return render(request, "admin/rme/ask.html", context)

    def note(self, request: HttpRequest, row: Model, text: str) -> None:
        """Log something that was done to a row by an action."""
        LogEntry.objects.log_actions(
            user_id=request.user.pk,
            queryset=[row],
            action_flag=CHANGE,
            change_message=text,
            single_object=True,
        )


class OwnerAdmin(TenantAdmin):
    """Pages for owners: keys and people."""

    readers: ClassVar[frozenset[str]] = OWNERS
    writers: ClassVar[frozenset[str]] = OWNERS


class DeploymentAdmin(TenantAdmin):
    """Pages for who runs the deployment alone."""

    def _may(self, request: HttpRequest, roles: Iterable[str], row: Model | str | None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)


def _has_field(model: Any, name: str) -> bool:
    return any(
        isinstance(field, Field) and field.name == name for field in model._meta.get_fields()
    )
