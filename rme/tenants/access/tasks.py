"""Celery tasks of access."""

import structlog
from celery import shared_task

from rme.tenants.access import mail, pages

log = structlog.get_logger(__name__)


@shared_task(name=pages.RESET_TASK)
def send_password_reset(email: str) -> None:
    """Send links for a new password to the accounts of an address."""
    log.info("reset.sent", accounts=mail.send_password_resets(email))
