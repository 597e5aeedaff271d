"""The Celery task of templates: versions become active at the time that people ordered."""

from celery import shared_task

from messaging.content import publishing
from rme.core.db import availability


@shared_task(name="messaging.publish_templates")
@availability.unlimited()
def publish_templates() -> None:
    """Make versions active whose time has come; the next run continues."""
    publishing.publish_due()
