"""Celery tasks of access."""

import structlog
from celery import shared_task

from rme.tenants.access import invitations, mail, pages, profile

log = structlog.get_logger(__name__)


@shared_task(name=pages.RESET_TASK)
def send_password_reset(email: str) -> None:
    """Send links for a new password to the accounts of an address."""
    log.info("reset.sent", accounts=mail.send_password_resets(email))


@shared_task(name=invitations.TASK)
def send_invitation(invitation_id: str, token: str) -> None:
    """Send the email of an invitation, unless it has been withdrawn."""
    log.info("invitation.sent", found=invitations.send(invitation_id, token))


@shared_task(name=profile.TASK)
def send_address_confirmation(user_id: str, email: str, token: str) -> None:
    """Send the link that confirms a new address of a person."""
    profile.send_confirmation(user_id, email, token)
    log.info("address.sent", user_id=user_id)


@shared_task(name=profile.NOTICE_TASK)
def send_address_notice(user_id: str, former: str) -> None:
    """Mail a person's former address that it was replaced."""
    profile.send_notice(user_id, former)
    log.info("address.notice_sent", user_id=user_id)
