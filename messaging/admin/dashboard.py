"""The admin's first page: Home, with the checklist of a new organization."""

from typing import Any

from django.http import HttpRequest

from messaging.admin import first_steps
from messaging.console.home import page


def show(request: HttpRequest, context: dict[str, object]) -> dict[str, Any]:
    """Return the template context of the first page (called by the theme)."""
    home = page.context(request)
    organization_id = home["checked"]
    setup = first_steps.of(str(organization_id)) if organization_id else None
    return {**context, **home, "title": "Home", "setup": setup}
