"""Acting as another user: to see what that person sees, with a reason, for half an hour at most.

The session stays the person's own; each request gets the other user as its `user`, without the
permissions to change keys, roles and webhooks. So acting adds no permission.
"""

import time
from typing import Any, cast

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.http import HttpRequest

from rme.tenants import audit, roles
from rme.tenants.audit import ActingRequest, Action
from rme.tenants.models import Membership, User
from rme.tenants.roles import Permission

WITHHELD = frozenset({Permission.CHANGE_KEYS, Permission.CHANGE_WEBHOOKS, Permission.GRANT_ROLES})
"""Permissions that nobody has while acting: they grant rights, or show secrets."""
CLOSED = (
    "/admin/account/",
    "/admin/password_change/",
    "/admin/acting/begin/",
    "/push-demo",
)
"""Paths that are refused while acting: what they change is the other person's own."""
KEY = "rme_acting"
"""The key in the session of the user as whom a person acts, the reason, and the end."""
FRESH_SECONDS = 300
"""How long a proof of the second factor counts as fresh."""


def may_act_as(person: User, other: User) -> bool:
    """Return whether a person may act as another: only as one who may do nothing more.

    Superusers may act as all but superusers. Owners may as people who have roles in organizations
    alone in which the owner might grant those roles.
    """
    if person.pk == other.pk or other.is_superuser or not (other.is_active and other.is_staff):
        return False
    if not (person.is_active and person.is_staff):
        return False
    if person.is_superuser:
        return True
    rows = Membership.objects.filter(user_id=other.pk).values_list("organization_id", "role")
    held = list(rows)
    return bool(held) and all(role in roles.grantable(person, own) for own, role in held)


def is_proven(request: HttpRequest) -> bool:
    """Return whether a person has proven lately who it is, by the second factor if it has one."""
    if not is_mfa_enabled(request.user):
        return bool(did_recently_reauthenticate(request))
    since = time.time() - FRESH_SECONDS
    proofs = get_authentication_records(request, request.user)
    return any(each["method"] == "mfa" and each["at"] >= since for each in proofs)


def begin(request: HttpRequest, other: User, reason: str) -> None:
    """Let the person of a request act as another user, and record it."""
    until = int(time.time()) + settings.ACTING_SECONDS
    request.session[KEY] = {"user": other.pk, "reason": reason, "until": until}
    minutes = settings.ACTING_SECONDS // 60
    entries = audit.about_person(
        other, Action.ACTING_BEGUN, text=f"for at most {minutes} minutes", reason=reason
    )
    audit.record(audit.actor_of(request), entries)


def end(request: HttpRequest, text: str = "") -> None:
    """Let the person of a request be itself again, and record it."""
    acting = request.session.pop(KEY, None)
    if acting is None:
        return
    other = User.objects.filter(pk=acting["user"]).first()
    if other is not None:
        entries = audit.about_person(other, Action.ACTING_ENDED, text=text)
        audit.record(audit.actor_of(request, audit.person_behind(request)), entries)


def enter(request: HttpRequest) -> str:
    """Set the user as whom a request's person acts; return why acting must end, or nothing."""
    acting: dict[str, Any] | None = request.session.get(KEY)
    person: Any = request.user
    if acting is None or not person.is_authenticated:
        return ""
    if time.time() >= acting["until"]:
        return "its time was over"
    other = User.objects.filter(pk=acting["user"]).first()
    if other is None or not may_act_as(person, other):
        return "it is not allowed any more"
    roles.withhold(other, WITHHELD)
    given = cast(ActingRequest, request)
    given.acting_by, given.acting_reason = person, acting["reason"]
    request.user = other
    return ""
