"""A forgotten password: the same answer for everybody, and a link by email that works once."""

import pytest
from django.core import mail

from rme.core.redis.connection import redis_client
from rme.tenants.access.tasks import send_password_reset
from rme.tenants.models import User
from tests.tenants.access.scene import PASSWORD, browser, is_in, links, log_in, member, with_totp

pytestmark = pytest.mark.django_db
RESET = "/admin/account/password/reset/"
NEW = {"password1": "another horse 1", "password2": "another horse 1"}


@pytest.fixture(autouse=True)
def _mail(settings):
    settings.MAIL_ENABLED = True


def ask(email, address="192.0.2.1"):
    return browser(address).post(RESET, {"email": email})


def follow(link, client):
    """Open a link of an email; return the page where the password is typed."""
    answer = client.get(link)
    return answer["Location"] if answer.status_code == 302 else ""


def test_known_and_unknown_addresses_have_the_same_answer_and_the_same_work(
    org, django_assert_num_queries
):
    member(org)
    with django_assert_num_queries(0):
        answers = [ask(email) for email in ("sam@example.com", "nobody@example.com")]
    assert [(each.status_code, each["Location"]) for each in answers] == [
        (302, f"{RESET}done/")
    ] * 2
    assert mail.outbox == []  # a worker sends
    assert redis_client().llen("default") == 2


def test_requests_from_one_address_are_limited(org):
    found = [ask(f"user{n}@example.com").status_code for n in range(7)]
    assert found == [302] * 5 + [429] * 2
    assert ask("user9@example.com", "198.51.100.1").status_code == 302


def test_requests_from_one_address_are_limited_without_redis(org, redis_away):
    found = [ask(f"user{n}@example.com").status_code for n in range(7)]
    assert found == [302] * 5 + [429] * 2
    assert ask("user9@example.com", "198.51.100.1").status_code == 302


def test_the_link_sets_a_password_once(org):
    member(org)
    send_password_reset("SAM@example.com")
    (letter,) = mail.outbox
    assert (letter.to, letter.subject) == (["sam@example.com"], "A new password for rme")
    (link,) = [each for each in links(letter.body) if "key" in each]
    client = browser()
    form = follow(link, client)
    assert client.post(form, NEW).status_code == 302
    assert log_in(browser(), password="another horse 1").status_code == 302
    assert log_in(browser(), password=PASSWORD).status_code == 200
    assert follow(link, browser()) == ""  # used


def test_a_new_password_ends_sessions_and_passes_no_second_factor(org):
    user = with_totp(member(org))
    elsewhere = browser()
    elsewhere.force_login(user)
    send_password_reset("sam@example.com")
    (link,) = [each for each in links(mail.outbox[0].body) if "key" in each]
    client = browser()
    client.post(follow(link, client), NEW)
    assert not is_in(elsewhere)
    assert not is_in(client)
    assert log_in(client, password="another horse 1")["Location"].endswith("/2fa/authenticate/")


def test_a_weak_password_is_refused(org):
    member(org)
    send_password_reset("sam@example.com")
    (link,) = [each for each in links(mail.outbox[0].body) if "key" in each]
    client = browser()
    form = follow(link, client)
    assert client.post(form, {"password1": "12345678", "password2": "12345678"}).status_code == 200
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.parametrize("fields", [{"is_active": False}, {"is_staff": False}])
def test_account_that_may_not_log_in_gets_no_reset_link(org, fields):
    member(org, **fields)
    send_password_reset("sam@example.com")
    send_password_reset("nobody@example.com")
    assert mail.outbox == []


def test_without_a_mail_server_the_page_says_whom_to_ask(org, settings):
    settings.MAIL_ENABLED = False
    answer = browser().get(RESET, follow=True)
    assert b"Ask a superuser" in answer.content
    assert b"Forgot your password" not in answer.content
