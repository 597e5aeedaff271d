"""What the audit has of log-ins: each once, for each organization of the person."""

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.db import IntegrityError, connection

from rme.tenants.access.tasks import send_password_reset
from rme.tenants.models import AuditEntry, Membership, User
from tests import audited, factories
from tests.tenants.access.scene import (
    CODE,
    PASSWORD,
    browser,
    code_of,
    links,
    log_in,
    member,
    with_totp,
)
from tests.tenants.access.test_forgotten_password import follow
from tests.tenants.access.test_invitations import NEW, invite, path_of
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db
PERSON = "tenants.user"


def found():
    """Return who did what to whose account, in which organization, and what is said of it."""
    return [
        (
            line.entry.actor_name,
            line.entry.action,
            line.values.label if line.values else "",
            line.entry.organization_id,
            line.values.text if line.values else "",
        )
        for line in audited.entries()
    ]


def test_log_in_and_log_out(org):
    member(org)
    client = browser("192.0.2.7")
    log_in(client)
    client.post("/admin/logout/")
    assert found() == [
        ("sam", "LOGGED_IN", "sam", "acme", "password"),
        ("sam", "LOGGED_OUT", "sam", "acme", ""),
    ]
    assert set(AuditEntry.objects.values_list("address", "kind")) == {("192.0.2.7", PERSON)}


def test_log_in_is_audited_in_every_organization_or_in_the_deployment(
    org,
):
    user = member(org)
    Membership.objects.create(user=user, organization=factories.organization("b"), role="VIEWER")
    log_in(browser())
    member(None, name="root", is_superuser=True)
    log_in(browser(), "root")
    assert [(actor, owner) for actor, _, _, owner, _ in found()] == [
        ("sam", "acme"), ("sam", "b"), ("root", None),
    ]  # fmt: skip


def test_failures_name_the_account_and_no_unknown_name(org):
    member(org)
    log_in(browser(), password="wrong")
    log_in(browser(), "my-password-typed-here")
    assert found() == [
        ("", "LOGIN_FAILED", "sam", "acme", "wrong password"),
        ("", "LOGIN_FAILED", "", None, "unknown account, wrong password"),
    ]
    assert set(AuditEntry.objects.values_list("address", "actor_id")) == {("192.0.2.1", None)}


def test_lock_out_is_audited_once_for_any_number_of_attempts(org):
    member(org)
    for _ in range(9):
        log_in(browser(), password="wrong")
    assert [each[1] for each in found()] == ["LOGIN_FAILED"] * 5 + ["LOCKED_OUT"]
    assert found()[-1] == ("", "LOCKED_OUT", "sam", "acme", "too many attempts from one address")


def test_a_second_factor_is_recorded_when_it_is_set_up_used_mistyped_and_removed(org):
    user = member(org)
    client = browser()
    log_in(client)
    secret = client.get("/admin/account/2fa/totp/activate/").context["form"].secret
    client.post("/admin/account/2fa/totp/activate/", {"code": code_of(secret)})
    client.post("/admin/account/2fa/recovery-codes/generate/", {})
    again = browser()
    log_in(again)
    again.post(CODE, {"code": "000000"})
    row = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
    again.post(CODE, {"code": row.wrap().get_unused_codes()[0]})
    client.post("/admin/account/2fa/totp/deactivate/")
    assert [(action, text) for _, action, _, _, text in found()] == [
        ("LOGGED_IN", "password"),
        ("FACTOR_ADDED", "authenticator app"),
        ("FACTOR_ADDED", "recovery codes"),
        ("FACTOR_ADDED", "recovery codes"),
        ("LOGIN_FAILED", "wrong code of the second factor"),
        ("LOGGED_IN", "password, second factor"),
        ("FACTOR_REMOVED", "authenticator app"),
        ("FACTOR_REMOVED", "recovery codes"),
    ]
    assert secret not in "".join(audited.lines())


CHANGES = {
    "totp/activate": [],
    "recovery-codes/generate": ["recovery_codes", "totp"],
    "totp/deactivate": ["recovery_codes", "totp"],
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_second_factor_does_not_change_without_its_entry(org, path):
    with connection.cursor() as cursor:  # as if the process ended before the entry is stored
        cursor.execute(
            f"ALTER TABLE {AuditEntry._meta.db_table} ADD CONSTRAINT refuse_factors "
            "CHECK (action NOT LIKE 'FACTOR_%')"
        )
    user = member(org)
    if CHANGES[path]:
        with_totp(user)
    factors = Authenticator.objects.filter(user=user).order_by("type")
    before = list(factors.values_list("type", "data"))
    client = browser()
    log_in(client)
    if CHANGES[path]:
        client.post(CODE, {"code": code_of()})
    page = client.get(f"/admin/account/2fa/{path}/")
    form = {} if CHANGES[path] else {"code": code_of(page.context["form"].secret)}
    with pytest.raises(IntegrityError, match="refuse_factors"):
        client.post(f"/admin/account/2fa/{path}/", form)
    assert list(factors.values_list("type", "data")) == before
    assert [kind for kind, _ in before] == CHANGES[path]


def test_ended_sessions_are_audited(org):
    member(org)
    here, there = browser(), browser()
    for client in (here, there):
        log_in(client)
    here.post("/admin/account/sessions/")
    assert found()[2:] == [("sam", "SESSIONS_ENDED", "sam", "acme", "1 others")]


def test_password_changed_by_its_owner_or_a_superuser_is_audited(org):
    user = member(org)
    client = browser()
    log_in(client)
    form = {"old_password": PASSWORD, "new_password1": "x" * 9 + "Q7", "new_password2": "x" * 9}
    client.post("/admin/password_change/", form)  # not the same twice
    form["new_password2"] = form["new_password1"]
    client.post("/admin/password_change/", form)
    assert found()[1:] == [("sam", "PASSWORD_CHANGED", "sam", "acme", "")]
    root = browser()
    root.force_login(User.objects.create_superuser("root"))
    typed = {"password1": "another-one-4", "password2": "another-one-4", "usable_password": "true"}
    root.post(f"/admin/tenants/user/{user.pk}/password/", typed)
    assert found()[2:] == [("root", "PASSWORD_CHANGED", "sam", "acme", "")]
    assert audited.lines() == ["password: … → …"]


def test_password_reset_by_link_is_audited(org, settings):
    settings.MAIL_ENABLED = True
    member(org, proven_email="sam@example.com")
    send_password_reset("sam@example.com")
    (link,) = [each for each in links(mail.outbox[0].body) if "key" in each]
    client = browser()
    new = {"password1": "another horse 1", "password2": "another horse 1"}
    client.post(follow(link, client), new)
    assert found() == [("sam", "PASSWORD_RESET", "sam", "acme", "")]


def test_accepted_invitation_is_audited(org):
    owner = browser()
    owner.force_login(member(org, "OWNER", "olga"))
    browser().post(path_of(invite(owner, org)), NEW)
    assert [each[:2] for each in found()] == [
        ("olga", "INVITED"),
        ("sam@example.com", "ACCEPTED"),
        ("sam@example.com", "ROLE_GRANTED"),
        ("sam@example.com", "LOGGED_IN"),
    ]
    assert "role: – → SUPPORT" in audited.lines(action="ROLE_GRANTED")


def test_changes_by_superusers_are_audited_in_the_persons_organization(org):
    user = member(org)
    root = browser()
    root.force_login(User.objects.create_superuser("root"))
    root.post(page(User, "delete", user.pk), {"post": "yes"})
    (line,) = audited.entries()
    assert (line.entry.action, line.entry.organization_id) == ("DELETED", "acme")
    assert "password: … → –" in line.lines
