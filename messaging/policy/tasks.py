"""Celery tasks of policies: the daily check of sender domains."""

from celery import shared_task

from messaging.policy import domain_checks
from rme.core.db import availability


@shared_task(name="messaging.check_sender_domains")
@availability.unlimited()
def check_sender_domains() -> None:
    """Check a batch of sender domains; the next run continues."""
    domain_checks.check_due()
