"""The admin's page of organizations in a cell: a new one gets no id that another cell has."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from rme.cells import calls, identifiers
from rme.tenants.admin.pages import OrganizationAdmin, OrganizationForm
from rme.tenants.models import Organization


class NewIdForm(OrganizationForm):
    """An organization, whose id no cell has yet when it is made."""

    def clean_id(self) -> str:
        organization_id = super().clean_id()
        try:
            taken_by = identifiers.cell_that_has(organization_id)
        except calls.CellNotReached as error:
            raise ValidationError(
                _("The cell %(error)s cannot be asked now whether it has this id: try again.")
                % {"error": error}
            ) from error
        if taken_by:
            raise ValidationError(
                _("The cell %(taken_by)s has an organization of this id.") % {"taken_by": taken_by}
            )
        return organization_id


admin.site.unregister(Organization)


@admin.register(Organization)
class CellOrganizationAdmin(OrganizationAdmin):
    form: Any = NewIdForm
