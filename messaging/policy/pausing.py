"""End a pause: the deliveries that waited for it are due at once."""

from django.db.models.functions import Now

from messaging.domain.statuses import Status, WaitReason
from messaging.models import Delivery


def resume(organization_id: str) -> int:
    """Make the deliveries due that wait for a pause, and return how many those were.

    Those that another pause covers will wait again.
    """
    paused = Delivery.objects.filter(
        organization_id=organization_id, status=Status.ACCEPTED, waiting=WaitReason.PAUSED
    )
    return paused.update(due_at=Now())
