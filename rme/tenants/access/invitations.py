"""Invitations into an organization. People who may grant roles create them; each is accepted once,
within a week."""

import hashlib
import secrets
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import BigIntegerField, Func, QuerySet, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from rme.core.process import task_requests
from rme.tenants import audit
from rme.tenants.access import mail, proven_addresses
from rme.tenants.access.roles import grantable
from rme.tenants.audit import Action
from rme.tenants.models import Invitation, Membership, User

TASK = "tenants.send_invitation"
VALID = timedelta(days=7)


class NotValid(Exception):
    """The invitation is unknown, used, expired, or its author may not grant the role any more."""


def create(invitation: Invitation) -> str:
    """Store an invitation, request its email after the commit, and return its link.

    With mail, the link only goes to the invited address: the caller must not show it.
    """
    token = secrets.token_urlsafe(32)
    invitation.digest = _digest(token)
    invitation.expires_at = timezone.now() + VALID
    invitation.mailed = settings.MAIL_ENABLED
    invitation.save()
    if settings.MAIL_ENABLED:
        key = str(invitation.pk)
        transaction.on_commit(lambda: task_requests.request_with(TASK, key, token))
    return _link(token)


def problem(organization_id: str, email: str) -> str:
    """Return why a person can't be invited, or nothing."""
    if waiting(organization_id).filter(email__iexact=email).exists():
        return _("An invitation waits for this person. Withdraw it first.")
    members = Membership.objects.filter(organization_id=organization_id, user__email__iexact=email)
    return _("This person has a role here already.") if members.exists() else ""


def waiting(organization_id: str) -> QuerySet[Invitation]:
    """Return the invitations of an organization that can be accepted."""
    rows = Invitation.objects.filter(organization_id=organization_id)
    return rows.filter(accepted_at=None, expires_at__gt=timezone.now())


def send(invitation_id: str, token: str) -> bool:
    """Send the email of an invitation; return whether there still is one."""
    rows = Invitation.objects.select_related("organization", "invited_by")
    row = rows.filter(pk=UUID(invitation_id), accepted_at=None, digest=_digest(token)).first()
    if row is None:
        return False
    context = {"invitation": row, "role": row.get_role_display(), "url": _link(token)}
    subject = _("You are invited to {organization}").format(organization=row.organization)
    mail.send("invitation", subject, row.email, context)
    return True


def find(token: str) -> Invitation:
    """Return the invitation of a token. Raise NotValid."""
    rows = Invitation.objects.select_related("organization", "invited_by")
    row = rows.filter(digest=_digest(token)).first()
    if row is None or row.accepted_at or row.expires_at <= timezone.now():
        raise NotValid
    author = row.invited_by
    if author is None or row.role not in grantable(author, row.organization_id):
        raise NotValid
    return row


def account_of(invitation: Invitation) -> User | None:
    """Return the account that has the invited address already."""
    accounts = proven_addresses.with_address(invitation.email)
    return next((user for user in accounts if user.is_staff and user.is_active), None)


def next_user_id(invitation: Invitation) -> int:
    """Return the id of the next account, which no other gets; one statement."""
    sequence = Func(Value("tenants_user"), Value("id"), function="pg_get_serial_sequence")
    number = Func(sequence, function="nextval", output_field=BigIntegerField())
    rows = Invitation.objects.filter(pk=invitation.pk)
    return int(rows.values_list(number, flat=True).get())


def accept(token: str, user: User, request: HttpRequest) -> None:
    """Grant a person, who may be new, the role of an invitation. Raise NotValid."""
    with transaction.atomic():
        locked = Invitation.objects.select_for_update().filter(digest=_digest(token))
        list(locked)  # two who accept at once come one after the other
        row = find(token)
        if user._state.adding:
            user.save(force_insert=True)  # its id may be known: it never replaces an account
        membership, created = Membership.objects.get_or_create(
            user=user, organization=row.organization, defaults={"role": row.role}
        )
        row.accepted_at = timezone.now()
        row.save(update_fields=["accepted_at"])
        entries = [audit.about(row, Action.ACCEPTED)]
        granted = {"role": ["", row.role]}
        entries += [audit.about(membership, Action.ROLE_GRANTED, changes=granted)] * created
        audit.record(audit.actor_of(request, user), entries)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _link(token: str) -> str:
    return f"{settings.BASE_URL}{reverse('invitation', args=[token])}"
