"""The admin's first page: Home, with the checklist of a new organization."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from messaging.admin import first_steps
from messaging.console.home import page
from messaging.console.new_organization import NewOrganizationForm


def show(request: HttpRequest, context: dict[str, object]) -> dict[str, Any]:
    """Return the template context of the first page (called by the theme)."""
    home = page.context(request)
    organization_id = home["checked"]
    setup = first_steps.of(str(organization_id)) if organization_id else None
    is_first = request.user.is_superuser and not home["viewer"]
    form = NewOrganizationForm() if is_first else None
    return {**context, **home, "title": _("Home"), "setup": setup, "form": form}
