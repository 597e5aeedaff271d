"""Base classes of all admin pages: visible rows, permissions, and the audit of changes."""

from typing import Any, ClassVar

from django.contrib.admin import AdminSite
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import ForeignKey, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from unfold.admin import ModelAdmin, TabularInline

from rme.tenants import organizations
from rme.tenants.access import roles
from rme.tenants.access.roles import Permission, organizations_for, organizations_of
from rme.tenants.admin.audited import AuditedPage, Changes
from rme.tenants.admin.choices import (
    OrganizationFilter,
    OwnChoices,
    TenantForm,
    has_field,
    is_offered,
)
from rme.tenants.admin.lists import TenantList, declared_lookups
from rme.tenants.organizations import latest


class TenantAdmin(OwnChoices, AuditedPage, ModelAdmin):
    """A page with the rows of a person's organizations, by the person's permissions in each.

    A row of another organization is answered like one that does not exist: 404. Superusers run
    the deployment and see all rows.
    """

    organization_path: ClassVar[str] = "organization_id"
    read_permission: Permission
    write_permission: Permission
    fixed_fields: ClassVar[tuple[str, ...]] = ("organization",)
    """Fields that are set when a row is created, and never change."""
    form = TenantForm
    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = False

    # --- visible rows ---------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        organization_ids = organizations_of(request, self.read_permission)
        return rows.filter(**{f"{self.organization_path}__in": organization_ids})

    def organization_of(self, row: Model) -> str:
        """Return the id of a row's organization."""
        value: Any = row
        for step in self.organization_path.split("__"):
            value = getattr(value, step)
        return str(value)

    def owner_of(self, row: Model) -> str | None:
        # Actions also concern rows that name their organization: an import, an organization.
        return self.organization_of(row) if isinstance(row, self.model) else None

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return a row that the person may see. Raise Http404.

        Django checks permissions first, which would reveal that a row exists elsewhere.
        """
        row = super().get_object(request, object_id, from_field)
        if row is None:
            raise Http404
        return row

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponseBase | None:
        """Run an action on the ticked rows. Raise Http404 for a row that can't exist."""
        key = self.model._meta.pk
        try:
            for value in request.POST.getlist(ACTION_CHECKBOX_NAME):
                key.to_python(value)
        except ValidationError:
            raise Http404 from None
        response: HttpResponseBase | None = super().response_action(request, queryset)
        return response

    # --- permissions ----------------------------------------------------------------------------
    def may(self, request: HttpRequest, permission: Permission, row: Model | str | None) -> bool:
        """Return whether a person has a permission in a row's organization; None: in any."""
        if not request.user.is_active or not request.user.is_staff:
            return False
        if request.user.is_superuser:
            return True
        if row is None:
            return bool(organizations_of(request, permission))
        # the theme passes the id on pages of actions
        subject = self.get_object(request, row) if isinstance(row, str) else row
        return roles.may(request.user, self.organization_of(subject), permission)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.may(request, self.read_permission, None)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, self.read_permission, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, self.write_permission, None)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, self.write_permission, obj) and self._is_written(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may(request, self.write_permission, obj) and self._is_written(obj)

    def _is_written(self, row: Model | None) -> bool:
        """Return whether a row may be changed here; not that of an organization elsewhere."""
        owner = self.owner_of(row) if row is not None else None
        return owner is None or organizations.is_served(owner)

    def lookup_allowed(self, lookup: str, value: object, request: Any = None) -> bool:
        """Return whether a query parameter belongs to a declared filter.

        Django allows all columns of the model, so that a person could find a hidden column's
        value character by character. PostgreSQL raises an error for NUL.
        """
        return "\0" not in str(value) and lookup in declared_lookups(self, request)

    # --- forms ----------------------------------------------------------------------------------
    def get_list_filter(self, request: HttpRequest) -> object:
        return (OrganizationFilter, *super().get_list_filter(request))

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> object:
        names = tuple(super().get_readonly_fields(request, obj))
        fixed = [name for name in self.fixed_fields if has_field(self.model, name)]
        return (*names, *fixed) if obj else names

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the fields of the form. What the database alone fills in has no value to add."""
        fields = super().get_fields(request, obj)
        readonly: Any = self.get_readonly_fields(request, obj)
        shown_only = set(readonly) if obj is None else set()
        filled_in = {
            field.name
            for field in self.opts.concrete_fields
            if field.name in shown_only and field.has_db_default() and not field.has_default()
        }
        return [each for each in fields if each not in filled_in]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[TenantList]:
        return TenantList

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, object]:
        """Return the initial values, with the person's only or latest organization.

        A row in the query string that the form does not offer is left out: a page must not
        depend on rows of another organization.
        """
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        # The list that led here may be filtered by an organization.
        organization_id = QueryDict(request.GET.get("_changelist_filters", "")).get("organization")
        if organization_id and has_field(self.model, "organization"):
            initial.setdefault("organization", organization_id)
        for field in self.opts.concrete_fields:
            if isinstance(field, ForeignKey) and field.name in initial:
                choice = self.formfield_for_foreignkey(field, request)
                if not is_offered(choice, initial[field.name]):
                    del initial[field.name]
        if has_field(self.model, "organization") and "organization" not in initial:
            initial |= self.own_organization(request, self.write_permission)
        return initial

    def own_organization(self, request: HttpRequest, permission: Permission) -> dict[str, object]:
        """Return the organization to begin with: the only one, or the one worked in last."""
        rows = organizations_for(request, permission).values_list("pk", flat=True)
        organization_ids = list(rows[:2])
        if len(organization_ids) > 1:
            organization_ids = list(rows.filter(pk=latest.remembered(request)))
        return {"organization": organization_ids[0]} if len(organization_ids) == 1 else {}

    def log_addition(self, request: HttpRequest, obj: Model, message: Changes) -> None:
        """Record a new row, and remember its organization for the next form."""
        if has_field(self.model, "organization"):
            latest.remember(request, self.organization_of(obj))
        super().log_addition(request, obj, message)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the rows to delete by name, and only counts of dependent rows (such as tokens)."""
        _, counts, permissions_needed, protected = super().get_deleted_objects(objs, request)
        return [str(row) for row in objs], counts, permissions_needed, protected

    # --- pages of actions -----------------------------------------------------------------------
    def show(
        self, request: HttpRequest, template: str, row: object, **context: object
    ) -> HttpResponse:
        """Return a page for an action of this model."""
        common = {**self.admin_site.each_context(request), "opts": self.opts, "original": row}
        return render(request, f"admin/rme/{template}.html", {**common, **context})

    def ask(self, request: HttpRequest, title: str, question: str) -> HttpResponse:
        """Return a confirmation page; its form POSTs to the same address."""
        return self.show(request, "ask", None, title=title, question=question)


class OwnerAdmin(TenantAdmin):
    """A page of an organization's people and roles."""

    read_permission: Permission = Permission.GRANT_ROLES
    write_permission: Permission = Permission.GRANT_ROLES


class DeploymentAdmin(TenantAdmin):
    """A page for superusers only."""

    read_permission: Permission = Permission.DEPLOYMENT
    write_permission: Permission = Permission.DEPLOYMENT

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = ModelAdmin.get_queryset(self, request)
        return rows if request.user.is_superuser else rows.none()

    def get_list_filter(self, request: HttpRequest) -> object:
        return self.list_filter

    def owner_of(self, row: Model) -> str | None:
        return None


class ReadOnly:
    """A page without add, change and delete."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class TenantInline(OwnChoices, TabularInline):
    """Rows that belong to the page's row: the same people may change them."""

    form = TenantForm
    extra = 0

    def __init__(self, parent_model: type[Model], admin_site: AdminSite) -> None:
        super().__init__(parent_model, admin_site)
        self.write_permission = self._page().write_permission

    def _page(self) -> Any:
        return self.admin_site.get_model_admin(self.parent_model)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(self._page().has_view_permission(request, obj))

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(self._page().has_change_permission(request, obj))

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(self._page().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(self._page().has_change_permission(request, obj))
