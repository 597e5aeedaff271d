"""The programs of an organization: OAuth applications and keys of the bot API, and their use."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from rme.core.db import clock
from rme.tenants.models import ApiKey, Application
from rme.tenants.roles import Permission

LISTED = 200
"""The most of each kind; the admin's lists have all."""


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key of the bot API in words."""

    row: ApiKey
    state: str
    colour: str

    @property
    def is_usable(self) -> bool:
        return self.colour == "good"


def _line(row: ApiKey, now: datetime) -> KeyLine:
    if row.revoked_at:
        return KeyLine(row, "Revoked", "muted")
    if row.expires_at and row.expires_at <= now:
        return KeyLine(row, "Expired", "muted")
    return KeyLine(row, "In use", "good")


@access.page_for(Permission.CHANGE_KEYS)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the applications and keys of an organization."""
    applications = Application.objects.filter(organization_id=viewer.organization_id)
    keys = ApiKey.objects.filter(organization_id=viewer.organization_id)
    now = clock.now()
    return access.show(
        request,
        viewer,
        "developers/programs",
        "Applications and keys",
        others_page="console:programs",
        applications=applications.select_related("user").order_by("name", "pk")[:LISTED],
        keys=[_line(row, now) for row in keys.order_by("name", "pk")[:LISTED]],
        scopes=", ".join(settings.OAUTH2_SCOPES.values()),
        now=now,
    )
