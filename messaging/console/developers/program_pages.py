"""The programs of an organization: OAuth applications and keys of the bot API, and their use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from rme.core.db import clock
from rme.tenants.access.roles import Permission
from rme.tenants.models import ANY_CATEGORY, ApiKey, Application
from rme.tenants.oauth import makers
from rme.tenants.oauth.makers import UnbackedProgram, unbacked_programs

LISTED = 200
"""The most of each kind; the admin's lists have all."""


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key of the bot API in words."""

    row: ApiKey
    state: str
    colour: str
    unbacked: UnbackedProgram | None
    """Set if it may do more than its maker."""

    @property
    def is_usable(self) -> bool:
        return self.colour == "good"


Unbacked = Mapping[Application | ApiKey, UnbackedProgram]


@dataclass(frozen=True, slots=True)
class ApplicationLine:
    """An application, and its permissions in words."""

    row: Application
    sends: str
    """The categories that it may send."""
    permissions: Sequence[str]
    unbacked: UnbackedProgram | None
    """Set if it may do more than its maker."""
    has_former: bool
    """Whether a former secret still counts."""

    @property
    def copy_id(self) -> str:
        """Return the id of the element with its client id."""
        return f"client-{self.row.pk}"

    @classmethod
    def of(cls, row: Application, unbacked: Unbacked, now: datetime) -> Self:
        """Build the line of an application."""
        is_any = ANY_CATEGORY in row.send_categories
        names = [wording.category(each) for each in row.send_categories]
        sends = _("every category") if is_any else ", ".join(names) or _("nothing")
        labels = [str(each.label) for each in Application.Permission if each in row.permissions]
        has_former = row.former_until is not None and row.former_until > now
        return cls(row, sends, labels, unbacked.get(row), has_former)


def _line(row: ApiKey, now: datetime, unbacked: Unbacked) -> KeyLine:
    state, colour = _("In use"), "good"
    if row.revoked_at:
        state, colour = _("Revoked"), "muted"
    elif row.expires_at and row.expires_at <= now:
        state, colour = _("Expired"), "muted"
    return KeyLine(row, state, colour, unbacked.get(row))


@access.page_for(Permission.CHANGE_KEYS)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the applications and keys of an organization."""
    applications = Application.objects.filter(organization_id=viewer.organization_id)
    keys = ApiKey.objects.filter(organization_id=viewer.organization_id)
    now = clock.now()
    unbacked = {each.row: each for each in unbacked_programs([viewer.organization_id])}
    lines = [
        ApplicationLine.of(row, unbacked, now)
        for row in applications.select_related("user").order_by("name", "pk")[:LISTED]
    ]
    return access.show(
        request,
        viewer,
        "developers/programs",
        _("Applications and keys"),
        applications=lines,
        keys=[_line(row, now, unbacked) for row in keys.order_by("name", "pk")[:LISTED]],
        grants=makers.grantable(viewer.user, viewer.organization_id),
        is_new="new" in request.GET or not lines,
    )
