"""Proofs that an account's email address belongs to the person behind the account.

An owner may invite any address. Without mail the owner sees the link, so accepting it proves
nothing: the account may have an unknown person's password and factors, and somebody else's address.
`User.proven_email` is the address that was proven. If the account's address changes, the account is
unproven again.

Four things prove an address: a sign-on by a provider that has verified it, an invitation that only
went out by mail, a new password by a mailed link, and the link that the profile mails to a new
address. The first three remove everything else that opens the account, since that may be another
person's. The profile's link removes nothing: the person who opens it is logged in to the account.
A mailbox alone never removes a second factor.
"""

import uuid

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.db import transaction
from django.http import HttpRequest

from rme.tenants import audit
from rme.tenants.audit import Action
from rme.tenants.models import User


def is_proven(user: User) -> bool:
    """Return whether the account's current address was proven."""
    return bool(user.proven_email) and is_same(user.proven_email, user.email)


def is_same(address: str, second_address: str) -> bool:
    """Return whether two addresses are the same but for the case of ASCII letters.

    The database's caseless comparison also takes `ı` for `i` and `ſ` for `s`, even in domains, so
    it only finds candidates (Unicode TR 36 §2.10.2).
    """
    return _folded(address) == _folded(second_address)


def _folded(address: str) -> str:
    return address.lower() if address.isascii() else address


def with_address(email: str) -> list[User]:
    """Return the accounts with an address, the oldest first."""
    rows = User.objects.filter(email__iexact=email).order_by("pk")
    return [row for row in rows[:100] if is_same(row.email, email)]


def take_over(request: HttpRequest, user: User, how: str, *, keep_sign_on: int = 0) -> None:
    """Make an account its address's owner's: remove everything that opens it, record the proof.

    `keep_sign_on`: the id of the single sign-on connection that the owner just used.
    """
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        locked.set_unusable_password()  # all sessions end with their password
        locked.person = uuid.uuid4()  # disconnects accounts elsewhere
        locked.proven_email = locked.email
        locked.save(update_fields=["password", "person", "proven_email"])
        for session in UserSession.objects.filter(user_id=user.pk):
            session.end()
        Authenticator.objects.filter(user_id=user.pk).delete()
        SocialAccount.objects.filter(user_id=user.pk).exclude(pk=keep_sign_on).delete()
        entries = audit.about_person(locked, Action.CREDENTIALS_REMOVED, text=how)
        audit.record(audit.actor_of(request, locked), entries)
    user.password, user.person = locked.password, locked.person
    user.proven_email = locked.proven_email


def prove_by_link(request: HttpRequest, user: User) -> None:
    """Take an account over for the holder of an invitation that only went out by mail."""
    take_over(request, user, "the address was proven by a mailed invitation")


def prove_by_reset(request: HttpRequest, user: User) -> None:
    """Record the proof by a mailed link to a new password, unless the account has a second factor.

    The new password is already the owner's. A second factor stays and nothing is proven: it may be
    somebody else's, or the owner's, and then a mailbox must not get past it.
    """
    if is_proven(user) or is_mfa_enabled(user):
        return
    password = user.password
    with transaction.atomic():
        take_over(request, user, "the address was proven by a new password")
        user.password = password
        user.save(update_fields=["password"])
