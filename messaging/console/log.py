"""What people do on pages of the console, in the change log."""

from collections.abc import Mapping

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model

from messaging.console.access import Viewer
from rme.tenants.models import Organization


def note(
    viewer: Viewer, text: str, values: Mapping[str, object], *, reason: str = "", row: Model | None
) -> None:
    """Log an action on a row, or on the organization if there is none."""
    shown = {name: ["", str(value)[:500]] for name, value in values.items() if value}
    message: list[dict[str, object]] = [{"changed": {"name": "", "object": text, "fields": [text]}}]
    message.append({"values": shown})
    if reason:
        message.append({"reason": reason})
    target = row or Organization(pk=viewer.organization_id, name=viewer.organization.name)
    LogEntry.objects.log_actions(
        user_id=viewer.user.pk,
        queryset=[target],
        action_flag=CHANGE,
        change_message=message,
        single_object=True,
    )
