"""What a person can choose in admin forms and lists: rows of organizations with its role."""

from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Field, ForeignKey, JSONField, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest

from rme.tenants.admin.json_fields import JsonField
from rme.tenants.models import Organization
from rme.tenants.roles import EDITORS, organizations_for, organizations_of


class TenantForm(ModelForm):
    """A form whose related rows are all of one organization."""

    def own_organization(self) -> Organization | None:
        """Give the organization that the row belongs to, or will."""
        chosen: Organization | None = self.cleaned_data.get("organization")
        return chosen or getattr(self.instance, "organization", None)

    def clean(self) -> dict[str, Any]:
        """Refuse rows of another organization: whoever belongs to two could mix them up."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        own = self.own_organization()
        for name, value in list(given.items()):
            foreign = isinstance(value, Model) and getattr(value, "organization_id", None)
            if own and foreign and foreign != own.pk:
                self.add_error(name, "This belongs to another organization.")
        return given

    def _post_clean(self) -> None:
        # The models' own checks read the organization: without one there is nothing to check.
        if "organization" not in self.fields or self.own_organization():
            super()._post_clean()


class OrganizationFilter(admin.SimpleListFilter):
    """Narrow a list to one organization; shown to whoever has several."""

    title = "organization"
    parameter_name = "organization"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.path: str = model_admin.organization_path
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(organizations_for(request, model_admin.readers).values_list("pk", "name")[:200])

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.path: self.value()}) if self.value() else queryset


class OwnChoices:
    """Offer only rows of the person's own organizations, wherever one can be chosen."""

    writers: ClassVar[frozenset[str]] = EDITORS

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if isinstance(db_field, JSONField):
            kwargs.setdefault("form_class", JsonField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        model: Any = db_field.related_model
        if model is Organization:
            kwargs["queryset"] = organizations_for(request, self.writers)
        elif not request.user.is_superuser:
            own = organizations_of(request, self.writers)
            known = has_field(model, "organization")
            rows = model._default_manager
            kwargs["queryset"] = rows.filter(organization_id__in=own) if known else rows.none()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


def is_offered(choice: ModelChoiceField, value: Any) -> bool:
    """Check whether a field of a form would take a value."""
    try:
        # PostgreSQL refuses NUL with an error of its own
        return "\0" not in str(value) and choice.clean(value) is not None
    except ValidationError:
        return False


def has_field(model: Any, name: str) -> bool:
    """Say whether a model has a column of a name."""
    return any(
        isinstance(field, Field) and field.name == name for field in model._meta.get_fields()
    )
