"""The own profile: a name at once, an address by a mailed link."""

import base64
import json
import time

import pytest
from django.core import mail

from rme.core.redis.connection import redis_client
from rme.tenants.access import sessions
from rme.tenants.access.tasks import send_address_confirmation, send_address_notice
from rme.tenants.audit import Action
from rme.tenants.models import User
from tests import audited
from tests.tenants.access.scene import browser, links, log_in, member
from tests.threads import during

pytestmark = pytest.mark.django_db
PROFILE, ADDRESS = "/admin/account/profile/", "/admin/account/email/"
NEW = "sam.new@example.com"


@pytest.fixture(autouse=True)
def _mail(settings):
    settings.MAIL_ENABLED = True


def requested():
    """Return the arguments of the task that was requested last."""
    newest = json.loads(redis_client().lindex("default", 0))
    arguments, *_ = json.loads(base64.b64decode(newest["body"]))
    return arguments


def logged_in(name="sam"):
    client = browser()
    assert log_in(client, name).status_code == 302
    return client


def link_to(client, email=NEW):
    """Request a change of address; return the path of the mailed link."""
    assert client.post(ADDRESS, {"email": email}).status_code == 302
    send_address_confirmation(*requested())
    letter = mail.outbox[-1]
    assert letter.to == [email]
    return next(each for each in links(letter.body) if each.startswith(ADDRESS))


def test_everybody_may_change_the_own_name(org):
    member(org, "SUPPORT")
    client = logged_in()
    assert client.post(PROFILE, {"first_name": "Sam", "last_name": "Reyes"}).status_code == 302
    assert User.objects.get().get_full_name() == "Sam Reyes"
    assert len(audited.entries(action=Action.CHANGED)) == 1


def test_address_counts_once_the_mailed_link_is_followed(org):
    member(org, "SUPPORT")
    client = logged_in()
    link = link_to(client)
    assert User.objects.get().email == "sam@example.com"
    assert client.get(link).status_code == 200  # looks, as mail scanners do
    assert User.objects.get().email == "sam@example.com"
    assert client.post(link).status_code == 302
    user = User.objects.get()
    assert (user.email, user.proven_email) == (NEW, NEW)
    (entry,) = audited.entries(action=Action.CHANGED)
    assert entry.values.changes == [["email", "sam@example.com", NEW]]
    assert client.post(link).status_code == 404  # used


@pytest.mark.django_db(transaction=True)
def test_only_one_of_two_open_links_wins(org):
    member(org)
    client = logged_in()
    link = link_to(client)
    first = {"email": "first@example.com", "proven_email": "first@example.com"}
    (answer,) = during(lambda: User.objects.update(**first), lambda: client.post(link))
    assert answer.status_code == 404
    assert User.objects.get().email == "first@example.com"


def test_link_is_no_other_persons(org):
    member(org)
    member(org, name="eve")
    link = link_to(logged_in())
    eve = logged_in("eve")
    assert eve.post(link).status_code == 404
    assert User.objects.get(username="eve").email == "eve@example.com"
    assert browser().post(link).status_code == 302  # to log-in


@pytest.mark.parametrize("token", ["x", "a:b:c", "%00"])
def test_forged_link_is_refused(org, token):
    member(org)
    assert logged_in().get(f"{ADDRESS}{token}/").status_code == 404


def test_link_expires_and_ends_with_a_new_password(org):
    user = member(org)
    link = link_to(logged_in())
    user.set_password("another horse 1")
    user.save()
    client = browser()
    log_in(client, password="another horse 1")
    assert client.post(link).status_code == 404


def test_stale_session_must_prove_itself_first(org):
    member(org)
    client = logged_in()
    session = client.session
    del session["account_authentication_methods"]
    session.save()
    answer = client.post(ADDRESS, {"email": NEW})
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    assert redis_client().llen("default") == 0


@pytest.mark.parametrize(("seconds", "leads_to"), [(600, "/admin/login/"), (60, PROFILE)])
def test_single_sign_on_alone_needs_a_recent_log_in(org, seconds, leads_to):
    """`(seconds, leads_to)`: how long ago the person logged in, and the answer's location."""
    user = member(org)
    client = browser()
    user.set_unusable_password()
    user.save()
    client.force_login(user)
    session = client.session
    session[sessions.BEGAN] = int(time.time()) - seconds
    session.save()
    answer = client.post(ADDRESS, {"email": NEW})
    assert answer["Location"].startswith(leads_to)
    assert redis_client().llen("default") == (leads_to == PROFILE)


def test_former_address_is_told(org):
    member(org)
    client = logged_in()
    client.post(link_to(client))
    send_address_notice(*requested())
    assert mail.outbox[-1].to == ["sam@example.com"]
    assert "has another email address now" in mail.outbox[-1].body


def test_requests_are_limited(org):
    member(org)
    client = logged_in()
    codes = [client.post(ADDRESS, {"email": f"a{n}@example.com"}).status_code for n in range(7)]
    assert codes == [302] * 5 + [429] * 2


def test_without_mail_only_superusers_change_theirs(org, settings):
    settings.MAIL_ENABLED = False
    member(org)
    client = logged_in()
    assert client.post(ADDRESS, {"email": NEW}).status_code == 200
    assert "sends no mail" in client.get(ADDRESS).content.decode()
    assert User.objects.get().email == "sam@example.com"
    User.objects.update(is_superuser=True, proven_email="sam@example.com")
    assert client.post(ADDRESS, {"email": NEW}).status_code == 302
    user = User.objects.get()
    assert (user.email, user.proven_email) == (NEW, "sam@example.com")


def test_acting_person_reaches_neither(org):
    person = User.objects.create_superuser("root", "root@example.com", "correct horse battery")
    target = member(org)
    client = browser()
    log_in(client, "root")
    assert person.pk != target.pk
    client.post(f"/admin/acting/begin/{target.pk}/", {"reason": "ticket 1"})
    for path in (PROFILE, ADDRESS):
        assert client.post(path, {"email": NEW}).status_code == 403
