"""Strangers cannot learn which accounts exist: a thousand tries have one answer and cost one work.

The work is counted in hashes of passwords and in statements; seconds would depend on the machine.
"""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.tenants.models import Invitation, User
from tests import factories
from tests.tenants.access.limits.test_logins import CountingHasher, hashed
from tests.tenants.access.scene import LOGIN, browser, member, with_totp
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db
KNOWN = ("marion", "locked", "nobody", "secure", "single", "master")
"""Names of accounts: in use, not active, of a program, with a second factor, without a password
(single sign-on), and a superuser's."""
UNKNOWN = tuple(f"{name[::-1]}" for name in KNOWN)
OWN = ("X-Request-Id", "Content-Security-Policy", "Expires")
"""Headers with a value of each answer's own."""
MASKED = (
    r'name="csrfmiddlewaretoken" value="\w+"',
    r'nonce="[^"]*"',
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"/invitation/[\w-]+/",
    r'datetime="[^"]*"',
)


@pytest.fixture
def accounts(org, settings):
    settings.PASSWORD_HASHERS = [f"{CountingHasher.__module__}.{CountingHasher.__qualname__}"]
    settings.MAIL_ENABLED = True
    other = factories.organization("other")
    fields = {"locked": {"is_active": False}, "nobody": {"is_staff": False}}
    fields["master"] = {"is_superuser": True}
    people = {name: member(other, name=name, **fields.get(name, {})) for name in KNOWN}
    with_totp(people["secure"])
    people["single"].set_unusable_password()
    people["single"].save()
    assert not User.objects.filter(username__in=UNKNOWN).exists()


def tried(send, name):
    """Return all that an answer shows, without what is its own, and the work that it cost."""
    before = len(hashed)
    with CaptureQueriesContext(connection) as captured:
        answer = send(name)
    text = answer.content.decode().replace(name, "NAME")
    for pattern in MASKED:
        text = re.sub(pattern, "", text)
    headers = {each: value for each, value in answer.items() if each not in OWN}
    headers |= {"Location": re.sub(MASKED[2], "", headers.get("Location", ""))}
    statements = [re.sub(r"'[^']*'|\d+", "?", each["sql"]) for each in captured]
    return answer.status_code, sorted(headers.items()), text, len(hashed) - before, statements


def outcomes(send, tries, known=KNOWN, unknown=UNKNOWN):
    """Try names of accounts and others in turn; return the first outcome, and in what the
    others differ."""
    names = [name for pair in zip(known, unknown, strict=True) for name in pair]
    found = [tried(send, names[number % len(names)]) for number in range(tries)]
    names = ("status", "headers", "body", "hashes", "statements")
    different = {
        name
        for each in found
        for name, one, first in zip(names, each, found[0], strict=True)
        if one != first
    }
    return found[0], sorted(different)


def addresses():
    """Yield networks that have not tried before: limits of one count for all names alike."""
    return (f"2001:db8:{number:x}::1" for number in range(1, 10_000))


def test_log_in_reveals_no_accounts(accounts):
    places = addresses()

    def send(name):
        return browser(next(places)).post(LOGIN, {"username": name, "password": "wrong guess"})

    first, others = outcomes(send, 500)
    assert (first[0], first[3], others) == (200, 1, [])


def test_a_forgotten_password_reveals_no_accounts(accounts):
    places = addresses()

    def send(name):
        form = {"email": f"{name}@example.com"}
        return browser(next(places)).post("/admin/account/password/reset/", form)

    first, others = outcomes(send, 250)
    assert (first[0], first[3:], others) == (302, (0, []), [])


def test_an_invitation_reveals_no_accounts_of_other_organizations(accounts, org):
    owner = browser()
    owner.force_login(member(org, "OWNER", "olga"))

    def send(name):
        Invitation.objects.all().delete()
        form = {"organization": org.pk, "email": f"{name}@example.com", "role": "VIEWER"}
        return owner.post(page(Invitation, "add"), form)

    send("warmup")
    first, others = outcomes(send, 250)
    assert (first[0], others) == (302, [])
