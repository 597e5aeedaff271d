"""Choices in admin forms and filters: only rows of the person's organizations."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError
from django.db.models import Field, ForeignKey, JSONField, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _

from rme.core.http.json_field import JsonField
from rme.tenants import organizations
from rme.tenants.access.roles import Permission, organizations_for, organizations_of
from rme.tenants.models import Organization


class TenantForm(ModelForm):
    """A form that accepts related rows of the row's own organization only."""

    def own_organization(self) -> Organization | None:
        """Return the organization of the row, as chosen in the form or stored."""
        organization: Organization | None = self.cleaned_data.get("organization")
        return organization or getattr(self.instance, "organization", None)

    def clean(self) -> dict[str, Any]:
        """Reject rows of another organization, which a member of both could choose, and of one
        that is elsewhere, which a superuser could.
        """
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        organization = self.own_organization()
        for name, value in list(cleaned.items()):
            foreign = isinstance(value, Model) and getattr(value, "organization_id", None)
            if organization and foreign and foreign != organization.pk:
                self.add_error(name, _("This belongs to another organization."))
            elif foreign and not organizations.is_served(foreign):
                self.add_error(name, _("This belongs to an organization that is served elsewhere."))
        return cleaned


class OrganizationFilter(admin.SimpleListFilter):
    """Filters a list by organization; visible to people with several organizations."""

    title = "organization"
    parameter_name = "organization"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.path: str = model_admin.organization_path
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = organizations_for(request, model_admin.read_permission)
        return list(rows.values_list("pk", "name")[:200])

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.path: self.value()}) if self.value() else queryset


class ChoiceSearch(AutocompleteSelect):
    """A choice by search. A text that can't be an id selects nothing, where Django's would fail."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        return super().optgroups(name, [each for each in value if self._is_id(each)], attr)

    def _is_id(self, text: str) -> bool:
        try:
            self.field.target_field.clean(text, None)
        except ValidationError:
            return False
        return True


class OwnChoices:
    """Offers only rows of the person's organizations in all choice fields."""

    write_permission: Permission
    """The permission that a choice of an organization or of its rows needs."""
    get_autocomplete_fields: Any
    admin_site: Any

    def formfield_for_dbfield(
        self, db_field: object, request: HttpRequest, **kwargs: object
    ) -> object:
        if isinstance(db_field, JSONField):
            kwargs.setdefault("form_class", JsonField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_choice_field(
        self, db_field: Any, request: HttpRequest, **kwargs: object
    ) -> object:
        """Preselect only a declared default; the theme would preselect the first choice."""
        if not db_field.has_default():
            blank = [("", _("Select value"))]
            kwargs.setdefault("choices", db_field.get_choices(blank_choice=blank))
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[object, object], request: HttpRequest, **kwargs: object
    ) -> Any:
        model: Any = db_field.related_model
        if model is Organization:
            kwargs["queryset"] = organizations_for(request, self.write_permission)
        elif not request.user.is_superuser:
            organization_ids = organizations_of(request, self.write_permission)
            has_organization = has_field(model, "organization")
            rows = model._default_manager
            kwargs["queryset"] = (
                rows.filter(organization_id__in=organization_ids)
                if has_organization
                else rows.none()
            )
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", ChoiceSearch(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


def is_offered(choice: "ModelChoiceField[Any]", value: object) -> bool:
    """Return whether a form field accepts a value."""
    try:
        # PostgreSQL raises an error for NUL.
        return "\0" not in str(value) and choice.clean(value) is not None
    except ValidationError:
        return False


def has_field(model: Any, name: str) -> bool:
    """Return whether a model has a field with this name."""
    return any(
        isinstance(field, Field) and field.name == name for field in model._meta.get_fields()
    )
