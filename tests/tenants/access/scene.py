"""A person of the console, with or without a second factor."""

import re
from typing import Any

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.test import Client

from rme.tenants.models import Membership, User

PASSWORD = "correct horse battery"
LOGIN = "/admin/login/"
CODE = "/admin/account/2fa/authenticate/"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def member(org: Any, role: str = "SUPPORT", name: str = "sam", **fields: Any) -> User:
    """Return a person who logs in by password."""
    fields = {"email": f"{name}@example.com", "is_staff": True, **fields}
    user: User = User.objects.create_user(name, password=PASSWORD, **fields)
    if org:
        Membership.objects.create(user=user, organization=org, role=role)
    return user


def with_totp(user: User) -> User:
    totp.TOTP.activate(user, SECRET)
    RecoveryCodes.activate(user)
    return user


def code_of(secret: str = SECRET) -> str:
    """Return the code that an app shows now: in the middle of those that are taken."""
    counters = list(totp.yield_hotp_counters_from_time())
    return str(totp.format_hotp_value(totp.hotp_value(secret, counters[len(counters) // 2])))


def browser(address: str = "192.0.2.1") -> Client:
    return Client(REMOTE_ADDR=address)


def log_in(client: Client, name: str = "sam", password: str = PASSWORD, to: str = LOGIN) -> Any:
    return client.post(to, {"username": name, "password": password})


def is_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def links(text: str) -> list[str]:
    """Return the paths of the links in a text."""
    return re.findall(r"https?://[^/\s]+(/\S+)", text)
